#include "fft/make_plan.hpp"

#include "base/error.hpp"
#include "fft/recorder.hpp"

#include <cmath>
#include <cstdlib>
#include <memory>

// VkFFT leaves a number of its tables unwritten: the same plan has the same bytes each time.
#define malloc(bytes) std::calloc(1, bytes)
// The locale is the process's: plan_fft sets the thread's around VkFFT's calls.
#define setlocale(category, name) (const_cast<char*>("C"))
#define VKFFT_BACKEND 0
namespace {
#include <vkFFT.h>
}
#undef setlocale
#undef malloc

#include <locale.h>
#ifdef __APPLE__
#include <xlocale.h>
#endif

namespace kp {
namespace {

// Numbers in the kernels have a point, whatever the program's locale is.
class PlainNumbers {
#ifdef _WIN32
public:
    PlainNumbers()
        : threads_(_configthreadlocale(_ENABLE_PER_THREAD_LOCALE)), before_(std::setlocale(LC_ALL, nullptr)) {
        std::setlocale(LC_ALL, "C");
    }
    ~PlainNumbers() {
        std::setlocale(LC_ALL, before_.c_str());
        _configthreadlocale(threads_);
    }
    PlainNumbers(const PlainNumbers&) = delete;
    PlainNumbers& operator=(const PlainNumbers&) = delete;

private:
    int threads_;
    std::string before_;
#else
public:
    PlainNumbers() : plain_(newlocale(LC_ALL_MASK, "C", nullptr)), before_(uselocale(plain_)) {}
    ~PlainNumbers() {
        uselocale(before_);
        freelocale(plain_);
    }
    PlainNumbers(const PlainNumbers&) = delete;
    PlainNumbers& operator=(const PlainNumbers&) = delete;

private:
    locale_t plain_, before_;
#endif
};

class Recording {
public:
    explicit Recording(fft::Recorder& made) { fft::recorder = &made; }
    ~Recording() { fft::recorder = nullptr; }
    Recording(const Recording&) = delete;
    Recording& operator=(const Recording&) = delete;
};

void require(VkFFTResult result, const FftRequest& request) {
    if (result == VKFFT_SUCCESS) return;
    throw Error(ErrorKind::unimplemented, "VkFFT has no kernels for transforms of length " +
                                              std::to_string(request.length) + " on this device (its code " +
                                              std::to_string(static_cast<int>(result)) + ")");
}

}  // namespace

FftPlan plan_fft(const FftDevice& device, const FftRequest& request) {
    const PlainNumbers plain;
    fft::Recorder made(device);
    const Recording recording(made);

    uint64_t bytes = request.batches * request.length * request.inner * (request.doubles ? 16 : 8);
    VkBuffer buffer{};
    VkBufferCreateInfo info{};
    info.size = bytes;
    vkCreateBuffer({}, &info, nullptr, &buffer);
    made.listed(made.buffers.front());
    VkBuffer input{};
    if (request.from_input) {
        vkCreateBuffer({}, &info, nullptr, &input);
        made.listed(made.buffers.back());
    }

    VkPhysicalDevice physical_device{};
    VkDevice logical_device{};
    VkQueue queue{};
    VkCommandPool pool{};
    VkFence fence{};
    VkCommandBuffer commands{};
    VkFFTConfiguration configuration{};
    configuration.physicalDevice = &physical_device;
    configuration.device = &logical_device;
    configuration.queue = &queue;
    configuration.commandPool = &pool;
    configuration.fence = &fence;
    configuration.isCompilerInitialized = 1;
    // The buffer comes with VkFFTAppend: before, not all tables are there that descriptors are written for.
    configuration.bufferSize = &bytes;
    if (request.inner == 1) {
        configuration.FFTdim = 1;
        configuration.size[0] = request.length;
    } else {
        configuration.FFTdim = 2;
        configuration.size[0] = request.inner;
        configuration.size[1] = request.length;
        configuration.omitDimension[0] = 1;
    }
    configuration.isInputFormatted = request.from_input;
    configuration.inputBufferSize = request.from_input ? &bytes : nullptr;
    configuration.normalize = request.normalize;
    configuration.numberBatches = request.batches;
    configuration.doublePrecision = request.doubles;
    // Drivers may compute sines and cosines with an error of 2**-11.
    configuration.useLUT = 1;
    configuration.makeForwardPlanOnly = !request.inverse;
    configuration.makeInversePlanOnly = request.inverse;

    auto app = std::make_unique<VkFFTApplication>();
    require(initializeVkFFT(app.get(), configuration), request);  // it deletes what it made if it fails
    made.is_running = true;
    VkFFTLaunchParams launch{};
    launch.commandBuffer = &commands;
    launch.buffer = &buffer;
    if (request.from_input) launch.inputBuffer = &input;
    const VkFFTResult appended = VkFFTAppend(app.get(), request.inverse ? 1 : -1, &launch);
    deleteVkFFT(app.get());
    require(appended, request);
    if (made.is_unknown)
        throw Error(ErrorKind::internal, "VkFFT used Vulkan in a way that plans do not have");
    return std::move(made.plan);
}

}  // namespace kp
