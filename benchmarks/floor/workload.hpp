// What the engine is measured against: c = a * b over 3 x 4 KiB, recorded once and submitted many times.
//
// Two recordings: the dispatch alone, and upload of a and b, dispatch, download of c. The barriers are the
// fewest that are right for one submission at a time: the host waits for each, and nothing else touches the
// buffers.
#pragma once

#include "device.hpp"

#include <array>
#include <cstddef>

namespace benchmark_floor {

class Workload {
public:
    static constexpr uint32_t elements = 1024;

    // `groups` times the shader's local size are at least `elements` invocations.
    Workload(const Device& device, const uint32_t* spirv, size_t bytes, uint32_t groups);
    Workload(const Workload&) = delete;
    Workload& operator=(const Workload&) = delete;
    ~Workload();

    // Submits and waits for the end.
    void dispatch() { run(dispatch_); }
    void roundtrip() { run(roundtrip_); }
    // The same as roundtrip(), recorded anew before it.
    void rerecorded_roundtrip();

    // Host memory of a, b and c.
    [[nodiscard]] float* host(size_t index) const noexcept { return mapped_[index]; }

private:
    static constexpr uint64_t size = elements * sizeof(float);

    void create_pipeline(const uint32_t* spirv, size_t bytes);
    void create_descriptors();
    void create_commands();
    void record_dispatch();
    void record_roundtrip();
    void add_dispatch(VkCommandBuffer commands);
    void add_barrier(VkPipelineStageFlags from, VkAccessFlags written, VkPipelineStageFlags to,
                     VkAccessFlags used);
    void run(VkCommandBuffer commands);

    const Device& device_;
    uint32_t groups_;
    std::array<Buffer, 3> local_;
    std::array<Buffer, 3> staging_;
    std::array<float*, 3> mapped_{};
    VkDescriptorSetLayout set_layout_ = VK_NULL_HANDLE;
    VkPipelineLayout layout_ = VK_NULL_HANDLE;
    VkPipeline pipeline_ = VK_NULL_HANDLE;
    VkDescriptorPool descriptors_ = VK_NULL_HANDLE;
    VkDescriptorSet set_ = VK_NULL_HANDLE;
    VkCommandPool pool_ = VK_NULL_HANDLE;
    VkCommandBuffer dispatch_ = VK_NULL_HANDLE;
    VkCommandBuffer roundtrip_ = VK_NULL_HANDLE;
    VkSemaphore timeline_ = VK_NULL_HANDLE;
    uint64_t value_ = 0;
};

}  // namespace benchmark_floor
