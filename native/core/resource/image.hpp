// An image of one, two or three dimensions, or an array of layers of one or two dimensions. Its layout is
// GENERAL for its whole life: the transition is the first thing that the device does with it
// (device/initial_work.hpp).
//
// The host's texels are dense and row-major: layers, depth, rows, texels. Parts of an image are regions,
// not ranges of bytes: a region is a box of texels in a range of layers.
#pragma once

#include "adapter/image_format.hpp"
#include "resource/resource.hpp"

#include <string>

namespace kp {

struct ImageShape {
    uint32_t dims = 2;     // 1, 2 or 3
    bool arrayed = false;  // an array of layers, even of one layer
    uint32_t width = 0;
    uint32_t height = 1;
    uint32_t depth = 1;
    uint32_t layers = 1;
    const ImageFormat* format = nullptr;
};

struct ImageRegion {
    uint32_t x = 0, y = 0, z = 0, layer = 0;
    uint32_t width = 1, height = 1, depth = 1, layers = 1;

    friend bool operator==(const ImageRegion&, const ImageRegion&) = default;
};

class Image final : public Resource {
public:
    // Without `data`, the contents are undefined.
    Image(std::shared_ptr<Device> device, const void* data, const ImageShape& shape, MemoryType type);
    ~Image() override;

    [[nodiscard]] VkImage handle() const noexcept { return image_; }
    [[nodiscard]] VkImageView view() const noexcept { return view_; }
    [[nodiscard]] VkFormat format() const noexcept { return shape_.format->format; }
    [[nodiscard]] const ImageShape& shape() const noexcept { return shape_; }
    // Whether shaders of this device may store to it, sample it, and filter it.
    [[nodiscard]] bool storable() const noexcept { return storable_; }
    [[nodiscard]] bool sampleable() const noexcept { return sampleable_; }
    [[nodiscard]] bool filterable() const noexcept { return filterable_; }
    [[nodiscard]] ImageRegion whole_region() const noexcept;
    [[nodiscard]] uint64_t bytes_of(const ImageRegion& region) const noexcept;
    // Throws Error(out_of_range) if the region is empty or leaves the image.
    void check_region(const ImageRegion& region, const char* action) const;
    // The copy of the texels of `region` from or to dense rows in a buffer.
    [[nodiscard]] VkBufferImageCopy copy(uint64_t buffer_offset, const ImageRegion& region) const noexcept;
    [[nodiscard]] VkBufferImageCopy whole(uint64_t buffer_offset) const noexcept {
        return copy(buffer_offset, whole_region());
    }
    void set_name(const std::string& name) override;

    // As read() and write(), but only for a region.
    void read_region(void* out, const ImageRegion& region);
    void write_region(const void* data, const ImageRegion& region);

private:
    void download(void* out, uint64_t offset, uint64_t size) override;
    void upload(const void* data, uint64_t offset, uint64_t size) override;
    [[nodiscard]] bool collect_upload(const void* data) override;
    void release(std::vector<Point> points) override;
    void stage(bool up, void* host, const ImageRegion& region);

    VkImage image_ = VK_NULL_HANDLE;
    VkImageView view_ = VK_NULL_HANDLE;
    bool storable_ = false;
    bool sampleable_ = false;
    bool filterable_ = false;
    ImageShape shape_;
};

// "640 x 480 image of rgba8 (uint8)"
[[nodiscard]] std::string describe(const ImageShape& shape);

}  // namespace kp
