#include "workload.hpp"

namespace benchmark_floor {
namespace {

constexpr VkMemoryPropertyFlags host_memory =
    VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;

}  // namespace

Workload::Workload(const Device& device, const uint32_t* spirv, size_t bytes, uint32_t groups)
    : device_(device),
      groups_(groups),
      local_{{{device, size, VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT, 0},
              {device, size, VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT, 0},
              {device, size, VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT, 0}}},
      staging_{{{device, size, host_memory, VK_MEMORY_PROPERTY_HOST_CACHED_BIT},
                {device, size, host_memory, VK_MEMORY_PROPERTY_HOST_CACHED_BIT},
                {device, size, host_memory, VK_MEMORY_PROPERTY_HOST_CACHED_BIT}}} {
    for (size_t i = 0; i < staging_.size(); ++i) mapped_[i] = static_cast<float*>(staging_[i].map());
    VkSemaphoreTypeCreateInfo type{VK_STRUCTURE_TYPE_SEMAPHORE_TYPE_CREATE_INFO};
    type.semaphoreType = VK_SEMAPHORE_TYPE_TIMELINE;
    VkSemaphoreCreateInfo create{VK_STRUCTURE_TYPE_SEMAPHORE_CREATE_INFO};
    create.pNext = &type;
    check(device.vk().vkCreateSemaphore(device.handle(), &create, nullptr, &timeline_), "vkCreateSemaphore");
    create_pipeline(spirv, bytes);
    create_descriptors();
    create_commands();
    record_dispatch();
    record_roundtrip();
}

Workload::~Workload() {
    const auto& vk = device_.vk();
    VkDevice device = device_.handle();
    vk.vkDeviceWaitIdle(device);
    vk.vkDestroyCommandPool(device, pool_, nullptr);
    vk.vkDestroyDescriptorPool(device, descriptors_, nullptr);
    vk.vkDestroyPipeline(device, pipeline_, nullptr);
    vk.vkDestroyPipelineLayout(device, layout_, nullptr);
    vk.vkDestroyDescriptorSetLayout(device, set_layout_, nullptr);
    vk.vkDestroySemaphore(device, timeline_, nullptr);
}

void Workload::create_pipeline(const uint32_t* spirv, size_t bytes) {
    const auto& vk = device_.vk();
    std::array<VkDescriptorSetLayoutBinding, 3> bindings{};
    for (uint32_t i = 0; i < bindings.size(); ++i)
        bindings[i] = {i, VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, 1, VK_SHADER_STAGE_COMPUTE_BIT, nullptr};
    VkDescriptorSetLayoutCreateInfo set{VK_STRUCTURE_TYPE_DESCRIPTOR_SET_LAYOUT_CREATE_INFO};
    set.bindingCount = bindings.size();
    set.pBindings = bindings.data();
    check(vk.vkCreateDescriptorSetLayout(device_.handle(), &set, nullptr, &set_layout_),
          "vkCreateDescriptorSetLayout");
    VkPipelineLayoutCreateInfo layout{VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO};
    layout.setLayoutCount = 1;
    layout.pSetLayouts = &set_layout_;
    check(vk.vkCreatePipelineLayout(device_.handle(), &layout, nullptr, &layout_), "vkCreatePipelineLayout");

    VkShaderModuleCreateInfo code{VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO};
    code.codeSize = bytes;
    code.pCode = spirv;
    VkShaderModule module = VK_NULL_HANDLE;
    check(vk.vkCreateShaderModule(device_.handle(), &code, nullptr, &module), "vkCreateShaderModule");
    VkComputePipelineCreateInfo create{VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO};
    create.stage.sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO;
    create.stage.stage = VK_SHADER_STAGE_COMPUTE_BIT;
    create.stage.module = module;
    create.stage.pName = "main";
    create.layout = layout_;
    const VkResult made =
        vk.vkCreateComputePipelines(device_.handle(), VK_NULL_HANDLE, 1, &create, nullptr, &pipeline_);
    vk.vkDestroyShaderModule(device_.handle(), module, nullptr);
    check(made, "vkCreateComputePipelines");
}

void Workload::create_descriptors() {
    const auto& vk = device_.vk();
    const VkDescriptorPoolSize room{VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, 3};
    VkDescriptorPoolCreateInfo create{VK_STRUCTURE_TYPE_DESCRIPTOR_POOL_CREATE_INFO};
    create.maxSets = 1;
    create.poolSizeCount = 1;
    create.pPoolSizes = &room;
    check(vk.vkCreateDescriptorPool(device_.handle(), &create, nullptr, &descriptors_),
          "vkCreateDescriptorPool");
    VkDescriptorSetAllocateInfo allocate{VK_STRUCTURE_TYPE_DESCRIPTOR_SET_ALLOCATE_INFO};
    allocate.descriptorPool = descriptors_;
    allocate.descriptorSetCount = 1;
    allocate.pSetLayouts = &set_layout_;
    check(vk.vkAllocateDescriptorSets(device_.handle(), &allocate, &set_), "vkAllocateDescriptorSets");
    std::array<VkDescriptorBufferInfo, 3> buffers{};
    std::array<VkWriteDescriptorSet, 3> writes{};
    for (uint32_t i = 0; i < writes.size(); ++i) {
        buffers[i] = {local_[i].handle(), 0, size};
        writes[i] = {VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET};
        writes[i].dstSet = set_;
        writes[i].dstBinding = i;
        writes[i].descriptorCount = 1;
        writes[i].descriptorType = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER;
        writes[i].pBufferInfo = &buffers[i];
    }
    vk.vkUpdateDescriptorSets(device_.handle(), writes.size(), writes.data(), 0, nullptr);
}

void Workload::create_commands() {
    const auto& vk = device_.vk();
    VkCommandPoolCreateInfo create{VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO};
    create.flags = VK_COMMAND_POOL_CREATE_RESET_COMMAND_BUFFER_BIT;
    create.queueFamilyIndex = device_.family();
    check(vk.vkCreateCommandPool(device_.handle(), &create, nullptr, &pool_), "vkCreateCommandPool");
    VkCommandBufferAllocateInfo allocate{VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO};
    allocate.commandPool = pool_;
    allocate.level = VK_COMMAND_BUFFER_LEVEL_PRIMARY;
    allocate.commandBufferCount = 2;
    std::array<VkCommandBuffer, 2> made{};
    check(vk.vkAllocateCommandBuffers(device_.handle(), &allocate, made.data()), "vkAllocateCommandBuffers");
    dispatch_ = made[0];
    roundtrip_ = made[1];
}

void Workload::add_dispatch(VkCommandBuffer commands) {
    const auto& vk = device_.vk();
    vk.vkCmdBindPipeline(commands, VK_PIPELINE_BIND_POINT_COMPUTE, pipeline_);
    vk.vkCmdBindDescriptorSets(commands, VK_PIPELINE_BIND_POINT_COMPUTE, layout_, 0, 1, &set_, 0, nullptr);
    vk.vkCmdDispatch(commands, groups_, 1, 1);
}

void Workload::add_barrier(VkPipelineStageFlags from, VkAccessFlags written, VkPipelineStageFlags to,
                           VkAccessFlags used) {
    VkMemoryBarrier memory{VK_STRUCTURE_TYPE_MEMORY_BARRIER};
    memory.srcAccessMask = written;
    memory.dstAccessMask = used;
    device_.vk().vkCmdPipelineBarrier(roundtrip_, from, to, 0, 1, &memory, 0, nullptr, 0, nullptr);
}

void Workload::record_dispatch() {
    const auto& vk = device_.vk();
    const VkCommandBufferBeginInfo begin{VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO};
    check(vk.vkBeginCommandBuffer(dispatch_, &begin), "vkBeginCommandBuffer");
    add_dispatch(dispatch_);
    check(vk.vkEndCommandBuffer(dispatch_), "vkEndCommandBuffer");
}

void Workload::record_roundtrip() {
    const auto& vk = device_.vk();
    const VkCommandBufferBeginInfo begin{VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO};
    const VkBufferCopy whole{0, 0, size};
    check(vk.vkBeginCommandBuffer(roundtrip_, &begin), "vkBeginCommandBuffer");
    for (size_t i = 0; i < 2; ++i)
        vk.vkCmdCopyBuffer(roundtrip_, staging_[i].handle(), local_[i].handle(), 1, &whole);
    add_barrier(VK_PIPELINE_STAGE_TRANSFER_BIT, VK_ACCESS_TRANSFER_WRITE_BIT,
                VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT, VK_ACCESS_SHADER_READ_BIT);
    add_dispatch(roundtrip_);
    add_barrier(VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT, VK_ACCESS_SHADER_WRITE_BIT,
                VK_PIPELINE_STAGE_TRANSFER_BIT, VK_ACCESS_TRANSFER_READ_BIT);
    vk.vkCmdCopyBuffer(roundtrip_, local_[2].handle(), staging_[2].handle(), 1, &whole);
    add_barrier(VK_PIPELINE_STAGE_TRANSFER_BIT, VK_ACCESS_TRANSFER_WRITE_BIT, VK_PIPELINE_STAGE_HOST_BIT,
                VK_ACCESS_HOST_READ_BIT);
    check(vk.vkEndCommandBuffer(roundtrip_), "vkEndCommandBuffer");
}

void Workload::rerecorded_roundtrip() {
    record_roundtrip();
    run(roundtrip_);
}

void Workload::run(VkCommandBuffer commands) {
    const uint64_t value = ++value_;
    VkTimelineSemaphoreSubmitInfo signal{VK_STRUCTURE_TYPE_TIMELINE_SEMAPHORE_SUBMIT_INFO};
    signal.signalSemaphoreValueCount = 1;
    signal.pSignalSemaphoreValues = &value;
    VkSubmitInfo submit{VK_STRUCTURE_TYPE_SUBMIT_INFO};
    submit.pNext = &signal;
    submit.commandBufferCount = 1;
    submit.pCommandBuffers = &commands;
    submit.signalSemaphoreCount = 1;
    submit.pSignalSemaphores = &timeline_;
    check(device_.vk().vkQueueSubmit(device_.queue(), 1, &submit, VK_NULL_HANDLE), "vkQueueSubmit");
    VkSemaphoreWaitInfo wait{VK_STRUCTURE_TYPE_SEMAPHORE_WAIT_INFO};
    wait.semaphoreCount = 1;
    wait.pSemaphores = &timeline_;
    wait.pValues = &value;
    check(device_.vk().vkWaitSemaphores(device_.handle(), &wait, UINT64_MAX), "vkWaitSemaphores");
}

}  // namespace benchmark_floor
