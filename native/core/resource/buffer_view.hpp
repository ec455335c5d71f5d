// A part of a buffer, or all of it under another shape: the native side of a tensor's view. It owns no
// memory: the buffer does, and lives as long as any view of it. Destroying a view drops its reference to
// the buffer; destroying the buffer ends every view.
#pragma once

#include "resource/buffer.hpp"
#include "resource/resource.hpp"

namespace kp {

class BufferView {
public:
    // Throws Error(out_of_range) if [offset, offset + size) is not inside `base`.
    BufferView(const ResourceRange& base, uint64_t offset, uint64_t size);

    // Throws Error(failed_precondition) if the view or its buffer was destroyed.
    [[nodiscard]] const ResourceRange& range(const char* action) const;
    [[nodiscard]] Buffer& buffer() const noexcept { return static_cast<Buffer&>(*range_.resource); }
    [[nodiscard]] uint64_t offset() const noexcept { return range_.offset; }
    [[nodiscard]] uint64_t size() const noexcept { return range_.size; }
    [[nodiscard]] bool is_init() const noexcept { return !destroyed_ && buffer().is_init(); }
    void destroy() noexcept { destroyed_ = true; }

    [[nodiscard]] const std::string& name() const noexcept { return name_; }
    void set_name(std::string name) { name_ = std::move(name); }

    // The bytes of [offset, offset + size) of the view, checked, as bytes of the buffer.
    [[nodiscard]] uint64_t locate(uint64_t offset, uint64_t size, const char* action) const;
    // Keeps the host's bytes of the buffer alive as long as this view. Call it when an array over them is
    // handed out.
    void keep_host();

private:
    ResourceRange range_;
    std::string name_;
    bool destroyed_ = false;
    std::shared_ptr<void> kept_;
};

}  // namespace kp
