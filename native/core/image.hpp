// A two-dimensional storage image. Its layout is GENERAL for all its life: the transition happens once, at creation.
#pragma once

#include "resource.hpp"

#include <string>

namespace kp {

struct ImageShape {
    uint32_t width = 0;
    uint32_t height = 0;
    uint32_t channels = 1;    // 1, 2 or 4
    std::string component;    // NumPy's dtype name: "uint8", "float32", ...
    bool normalized = false;  // unorm or snorm instead of an integer format
};

class Image final : public Resource {
public:
    Image(std::shared_ptr<Device> device, const void* data, const ImageShape& shape, MemoryType type);
    ~Image() override;

    [[nodiscard]] VkImage handle() const noexcept { return image_; }
    [[nodiscard]] VkImageView view() const noexcept { return view_; }
    [[nodiscard]] VkFormat format() const noexcept { return format_; }
    [[nodiscard]] const ImageShape& shape() const noexcept { return shape_; }
    [[nodiscard]] VkBufferImageCopy whole(uint64_t buffer_offset) const noexcept;
    void set_name(const std::string& name) override;

private:
    void download(void* out, uint64_t offset, uint64_t size) override;
    void upload(const void* data, uint64_t offset, uint64_t size) override;
    void release(std::vector<Point> points) override;

    VkImage image_ = VK_NULL_HANDLE;
    VkImageView view_ = VK_NULL_HANDLE;
    VkFormat format_ = VK_FORMAT_UNDEFINED;
    ImageShape shape_;
};

}  // namespace kp
