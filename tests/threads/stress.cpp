// The core under many threads, for the ThreadSanitizer: run by `./dev tsan`, on the null driver built with it
// as well.
//
// Copies and fills are executed by that driver, so that results can be checked, too. Each scenario runs on a
// device of its own, with one queue and with several; whatever a thread throws, or finds wrong, fails the
// run.
#include "compiler/compile.hpp"
#include "device/device.hpp"
#include "device/memory_report.hpp"
#include "device/profiler.hpp"
#include "record/algorithm.hpp"
#include "record/operation.hpp"
#include "resource/buffer.hpp"
#include "resource/make_object.hpp"
#include "resource/resource.hpp"
#include "resource/semaphore.hpp"
#include "run/fence.hpp"
#include "run/stream.hpp"
#include "run/waiter.hpp"

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <functional>
#include <string>
#include <thread>
#include <vector>

namespace {

using namespace kp;

constexpr int threads = 8;
constexpr uint64_t bytes = 256;
int turns = 150;
std::atomic<int> failures{0};

void expect(bool holds, const char* what) {
    if (holds) return;
    ++failures;
    std::fprintf(stderr, "  wrong: %s\n", what);
}

// `body(i)` on as many threads at once; what it throws is a failure.
void on_threads(int count, const std::function<void(int)>& body) {
    std::vector<std::thread> running;
    for (int i = 0; i < count; ++i)
        running.emplace_back([&, i] {
            try {
                body(i);
            } catch (const std::exception& error) {
                expect(false, error.what());
            }
        });
    for (auto& thread : running) thread.join();
}

bool refused(const std::function<void()>& call) {
    try {
        call();
        return false;
    } catch (const Error& error) {
        if (error.kind() != ErrorKind::failed_precondition) throw;
        return true;
    }
}

struct Bench {
    std::shared_ptr<Device> device;
    uint32_t queues;

    explicit Bench(std::vector<uint32_t> families) : queues(static_cast<uint32_t>(families.size())) {
        DeviceOptions options;
        options.family_queue_indices = std::move(families);
        options.recent_pipelines = 2;
        device = Device::create(std::move(options));
    }
    ~Bench() { device->close(); }

    [[nodiscard]] std::shared_ptr<Buffer> buffer(char byte, MemoryType type = MemoryType::device) const {
        const std::string data(bytes, byte);
        auto made = make_object<Buffer>(device, data.data(), bytes, type);
        made->write(data.data(), 0, bytes);
        return made;
    }
    [[nodiscard]] std::shared_ptr<Stream> stream(int i = 0, int64_t timestamps = 0) const {
        return make_object<Stream>(device, static_cast<uint32_t>(i) % queues, timestamps);
    }
};

ResourceRange all(const std::shared_ptr<Buffer>& buffer) { return {buffer, 0, bytes}; }
OperationPtr copy(const std::shared_ptr<Buffer>& from, const std::shared_ptr<Buffer>& to) {
    return make_copy({all(from), all(to)});
}
OperationPtr fill(const std::shared_ptr<Buffer>& buffer, char byte) {
    return make_fill({{all(buffer), std::string(4, byte)}});
}
std::string contents(Buffer& buffer) {
    std::string out(bytes, '\0');
    buffer.read(out.data(), 0, bytes);
    return out;
}
void eval(Stream& stream) {
    stream.submit();
    while (!stream.wait(UINT64_C(50'000'000))) {}
}

void own_streams(Bench& bench) {
    const auto shared = bench.buffer('s');
    on_threads(threads, [&](int i) {
        const char mark = static_cast<char>('a' + i);
        const auto mine = bench.buffer('-');
        const auto out = bench.buffer('-', MemoryType::device_and_host);
        const auto stream = bench.stream(i);
        for (int turn = 0; turn < turns; ++turn) {
            if (turn % 8 == 0) {
                stream->clear();
                stream->record(turn % 16 ? copy(shared, mine) : fill(mine, mark));
                stream->record(copy(mine, out));
            }
            eval(*stream);
            const char expected = turn / 8 % 2 ? 's' : mark;
            if (turn % 5 == 0)
                expect(contents(*out) == std::string(bytes, expected), "a copy of what a thread owns");
            if (turn % 16 == 3) stream->set_name("thread " + std::to_string(i));
        }
    });
}

// Profiles begin, nest and end while others build, submit, transfer and drop streams.
void profiles(Bench& bench) {
    Device& device = *bench.device;
    on_threads(threads, [&](int i) {
        if (i < 3) {
            for (int turn = 0; turn < turns; ++turn) {
                const size_t first = device.begin_profile({}, ProfilerLooks::operations);
                const size_t last = device.profiled_runs();
                expect(last >= first, "the runs of a profile are counted from its beginning");
                if (turn % 2) device.settle_profile();
                expect(device.profiled(first, last).runs.size() == last - first, "the runs of a profile");
                device.end_profile();
            }
            return;
        }
        const char mark = static_cast<char>('a' + i);
        const auto out = bench.buffer('-');
        auto stream = bench.stream(i);
        stream->record(fill(out, mark));
        for (int turn = 0; turn < turns; ++turn) {
            if (turn % 8 == 7) {
                stream->submit();
                stream = bench.stream(i);  // the former may still run
                stream->record(fill(out, mark));
            }
            eval(*stream);
            expect(contents(*out) == std::string(bytes, mark), "a fill while others profile");
        }
    });
    const std::lock_guard lock(device.graph_mutex());
    expect(device.profiler() == nullptr, "profiles that have ended");
}

// All write one tensor: a copy out of it never shows a mixture of two fills.
void shared_writers(Bench& bench) {
    const auto shared = bench.buffer('0');
    on_threads(threads, [&](int i) {
        const auto out = bench.buffer('-');
        const auto writer = bench.stream(i);
        const auto reader = bench.stream(i + 1);
        writer->record(fill(shared, static_cast<char>('0' + i)));
        reader->record(copy(shared, out));
        for (int turn = 0; turn < turns; ++turn) {
            writer->submit();
            reader->submit();
            while (!reader->wait(UINT64_C(50'000'000))) {}
            while (!writer->wait(UINT64_C(50'000'000))) {}
            const std::string got = contents(*out);
            expect(got == std::string(bytes, got[0]), "a tensor that all threads write");
        }
    });
}

void destroy_meets_eval(Bench& bench) {
    for (int round = 0; round < turns / 5; ++round) {
        const auto tensor = bench.buffer('t');
        std::vector<std::shared_ptr<Stream>> streams;
        for (int i = 0; i < threads; ++i) {
            streams.push_back(bench.stream(i));
            streams.back()->record(i % 2 ? copy(tensor, bench.buffer('-')) : fill(tensor, 'x'));
        }
        on_threads(threads, [&](int i) {
            if (i == 0) tensor->destroy();
            if (i == 1) streams[2]->destroy();
            (void)refused([&] {
                for (int turn = 0; turn < 5; ++turn) eval(*streams[static_cast<size_t>(i)]);
            });
        });
        expect(!tensor->is_init() && !streams[2]->is_init(), "what was destroyed is");
    }
}

// One thread at a time drives a stream; the others are told so, and nothing breaks.
void one_stream(Bench& bench) {
    const auto tensor = bench.buffer('-');
    const auto stream = bench.stream();
    std::atomic<int> done{0};
    on_threads(threads, [&](int i) {
        const auto operation = fill(tensor, static_cast<char>('a' + i));
        for (int turn = 0; turn < turns; ++turn) {
            if (!refused([&] { stream->record(operation); })) ++done;
            (void)refused([&] { stream->submit(); });
            (void)refused([&] { (void)stream->operation_names(); });
            (void)stream->is_recording();
            if (stream->wait(UINT64_C(1'000'000)) && turn % 7 == i % 7)
                (void)refused([&] { stream->clear(); });
            if (turn % 11 == i) (void)Fence::of({stream})->wait(UINT64_C(1'000'000));
        }
    });
    while (!stream->wait(UINT64_C(50'000'000))) {}
    expect(done > 0, "somebody had the stream");
    stream->clear();
    stream->record(fill(tensor, '!'));
    eval(*stream);
    expect(contents(*tensor) == std::string(bytes, '!'), "a stream that threads were after");
}

// One thread drives; the others look at all that it changes, and give names.
void looking(Bench& bench) {
    const auto first = bench.buffer('1');
    const auto second = bench.buffer('2');
    const auto stream = bench.stream(0, -1);
    std::atomic<bool> done{false};
    on_threads(threads, [&](int i) {
        if (i == 0) {
            for (int turn = 0; turn < turns; ++turn) {
                if (turn % 2) stream->clear();
                stream->record(copy(first, second));
                if (turn % 3) stream->record(fill(first, 'f'));
                eval(*stream);
                if (turn % 5 == 0) stream->rerecord();
            }
            done = true;
            return;
        }
        for (int turn = 0; !done; ++turn) {
            const size_t operations = stream->operation_names().size();
            expect(operations <= 4, "what is recorded");
            (void)stream->barriers();
            (void)stream->timed_names();
            (void)stream->command_buffer();
            (void)stream->is_recording();
            (void)stream->is_complete();
            (void)refused([&] { (void)stream->timestamps(); });
            stream->set_name("looked at by " + std::to_string(i));
            first->set_name(stream->name());
            (void)second->pending();
            expect(!first->label().empty(), "a label");
        }
    });
}

// A stream goes while a thread records into it, and while one submits it with another.
void destroy_meets_record(Bench& bench) {
    const auto tensor = bench.buffer('t');
    for (int round = 0; round < turns; ++round) {
        const auto one = bench.stream();
        const auto other = bench.stream();
        // Neither before the other thread is at work nor always at the same place.
        std::atomic<int> turn_now{-1};
        on_threads(3, [&](int i) {
            if (i == 0) {
                while (turn_now.load(std::memory_order_relaxed) < round % 5) std::this_thread::yield();
                for (volatile int wait = round % 17 * 300; wait > 0; wait = wait - 1) {}
                one->destroy();
            }
            if (i == 1)
                (void)refused([&] {
                    for (int turn = 0; turn < 5; ++turn) {
                        turn_now.store(turn, std::memory_order_relaxed);
                        one->record(fill(tensor, 'r'));
                        one->record(fill(tensor, 's'));
                        Stream::submit_together(*bench.device, one->queue(), {other.get(), one.get()}, {});
                        while (!one->wait(UINT64_C(50'000'000))) {}
                        while (!other->wait(UINT64_C(50'000'000))) {}
                        one->clear();
                    }
                });
            if (i == 2) {
                one->set_name("going");
                (void)one->operation_names();
            }
        });
        expect(!one->is_init() && one->operation_names().empty(), "a stream that was destroyed is empty");
        while (!other->wait(UINT64_C(50'000'000))) {}
    }
}

void semaphores(Bench& bench) {
    // On memory of their own: work on memory that held work uses would be held behind it, whatever it signals
    // to others.
    const auto semaphore = make_object<Semaphore>(bench.device, 0);
    on_threads(threads, [&](int i) {
        const auto stream = bench.stream(i);
        const auto tensor = bench.buffer('-');
        stream->record(fill(tensor, static_cast<char>('a' + i)));
        Timeline& timeline = semaphore->timeline();
        for (int turn = 0; turn < turns / 4; ++turn) {
            const auto value = static_cast<uint64_t>(turn * threads + i);
            Stream::submit_together(*bench.device, stream->queue(), {stream.get()},
                                    {{{&timeline, value}}, {{&timeline, value + 1}}, {semaphore}});
            while (!stream->wait(UINT64_C(50'000'000))) {}
        }
    });
    expect(semaphore->query() == static_cast<uint64_t>(turns / 4 * threads), "a chain through a semaphore");
}

void waiters(Bench& bench) {
    Waiter waiter(bench.device);
    std::atomic<int> told{0};
    std::thread thread([&] {
        while (!waiter.closed() || told < threads * turns / 2) {
            told += static_cast<int>(waiter.wait(UINT64_C(50'000'000)).size());
            if (waiter.closed()) break;
        }
    });
    on_threads(threads, [&](int i) {
        const auto stream = bench.stream(i);
        stream->record(fill(bench.buffer('-'), 'w'));
        for (int turn = 0; turn < turns / 2; ++turn) {
            stream->submit();
            const auto fence = Fence::of({stream});
            const uint64_t number = waiter.watch(fence);
            if (turn % 3 == 0) waiter.forget(number);
            while (!fence->wait(UINT64_C(50'000'000))) {}
            expect(!stream->is_running(), "a stream whose fence was waited for is collected");
        }
    });
    waiter.close();
    thread.join();
    expect(told > 0, "the waiter told");
}

// Objects come and go, and reports are made, while others work.
void coming_and_going(Bench& bench) {
    on_threads(threads, [&](int i) {
        for (int turn = 0; turn < turns / 2; ++turn) {
            const auto type = static_cast<MemoryType>(turn % 4);
            const auto made = bench.buffer(static_cast<char>('a' + i), type);
            made->set_name("tensor of " + std::to_string(i));
            const auto stream = bench.stream(i);
            stream->record(fill(made, 'f'));
            stream->submit();
            if (turn % 3) expect(contents(*made) == std::string(bytes, 'f'), "a tensor of a moment");
            if (turn % 16 == i) {
                (void)bench.device->memory_holders();
                (void)bench.device->trim();
                (void)bench.device->memory().statistics();
            }
            if (turn % 4 == 1) stream->destroy();
            if (turn % 4 == 2) made->destroy();
        }
    });
}

void closing(Bench& bench) {
    for (int round = 0; round < 10; ++round) {
        Bench other({0, 1});
        on_threads(threads, [&](int i) {
            if (i == 0) {
                other.device->close();
                return;
            }
            (void)refused([&] {
                const auto tensor = other.buffer('c');
                const auto stream = other.stream(i);
                stream->record(fill(tensor, 'd'));
                for (int turn = 0; turn < 10; ++turn) eval(*stream);
            });
        });
    }
    (void)bench;
}

// Algorithms of few modules and constants, made and dropped by all: one thread's pipeline is just being
// compiled, found, used in flight or dropped when another asks for it.
void pipelines(Bench& bench) {
    const auto module = [](int n) {
        const std::string text = R"(
            OpCapability Shader
            OpMemoryModel Logical GLSL450
            OpEntryPoint GLCompute %main "main" %b
            OpExecutionMode %main LocalSize )" +
                                 std::to_string(n + 1) + R"( 1 1
            OpDecorate %n SpecId 0
            OpDecorate %block Block
            OpMemberDecorate %block 0 Offset 0
            OpDecorate %b DescriptorSet 0
            OpDecorate %b Binding 0
            %void = OpTypeVoid
            %uint = OpTypeInt 32 0
            %n = OpSpecConstant %uint 1
            %zero = OpConstant %uint 0
            %block = OpTypeStruct %uint
            %pointer = OpTypePointer StorageBuffer %block
            %element = OpTypePointer StorageBuffer %uint
            %function = OpTypeFunction %void
            %b = OpVariable %pointer StorageBuffer
            %main = OpFunction %void None %function
            %label = OpLabel
            %at = OpAccessChain %element %b %zero
            OpStore %at %n
            OpReturn
            OpFunctionEnd)";
        const std::vector<uint32_t> words = assemble_spirv(text, 2);
        return std::string(reinterpret_cast<const char*>(words.data()), words.size() * 4);
    };
    std::vector<std::string> modules;
    for (int n = 0; n < 3; ++n) modules.push_back(module(n));
    std::atomic<int> working{threads - 1};
    struct Ended {  // also by what it throws
        std::atomic<int>& working;
        ~Ended() { --working; }
    };
    on_threads(threads, [&](int i) {
        if (i == 0) {
            while (working != 0) {
                bench.device->pipelines().trim();
                const PipelineCounts counts = bench.device->pipelines().counts();
                expect(counts.unused_pipelines <= counts.pipelines, "counts of pipelines");
                std::this_thread::yield();
            }
            return;
        }
        const Ended ended{working};
        const auto tensor = bench.buffer('p');
        for (int turn = 0; turn < turns; ++turn) {
            const auto shader =
                bench.device->pipelines().shader(modules[static_cast<size_t>(turn + i) % 3], "main");
            Specialization constants;
            const auto value = static_cast<uint32_t>(turn % 5);
            constants.data.assign(reinterpret_cast<const char*>(&value), sizeof value);
            constants.entries.push_back({0, 0, sizeof value});
            const auto algorithm = make_object<Algorithm>(
                bench.device, shader, std::vector<Argument>{{0, 0, 0, all(tensor), {}}},
                std::array<uint32_t, 3>{1, 1, 1}, constants, std::string());
            if (turn % 3 == 0) continue;
            const auto stream = bench.stream(i);
            stream->record(make_dispatch(algorithm, {1, 1, 1}, {}));
            stream->submit();  // goes while it runs, if the driver takes its time
            if (turn % 2) algorithm->destroy();
        }
    });
}

// What the sanitizers must report; ./dev tsan and ./dev asan run them first, because a build without its
// sanitizer finds nothing.
void seeded_race(Bench&) {
    volatile int shared = 0;
    on_threads(threads, [&](int) {
        for (int turn = 0; turn < 1000; ++turn) shared = shared + 1;
    });
}

void seeded_overrun(Bench&) {
    const std::vector<int> four(4);
    volatile size_t beyond = 4;
    expect(four.data()[beyond] == four.data()[0], "what lies beyond");
}

}  // namespace

int main(int count, char** arguments) {
#ifdef KP_NULL_MANIFEST
    setenv("VK_DRIVER_FILES", KP_NULL_MANIFEST, 1);
    setenv("VK_ICD_FILENAMES", KP_NULL_MANIFEST, 1);
#endif
    if (count > 1) turns = std::atoi(arguments[1]);
    using Scenarios = std::vector<std::pair<const char*, std::function<void(Bench&)>>>;
    const Scenarios seeded = {{"seeded race", seeded_race}, {"seeded overrun", seeded_overrun}};
    const Scenarios scenarios = {
        {"own streams", own_streams},
        {"profiles", profiles},
        {"shared writers", shared_writers},
        {"destroy meets eval", destroy_meets_eval},
        {"one stream", one_stream},
        {"looking", looking},
        {"destroy meets record", destroy_meets_record},
        {"semaphores", semaphores},
        {"waiters", waiters},
        {"coming and going", coming_and_going},
        {"closing", closing},
        {"pipelines", pipelines},
    };
    const char* only = count > 2 ? arguments[2] : nullptr;
    Scenarios chosen;
    for (const auto* each : {&scenarios, &seeded})
        for (const auto& [name, scenario] : *each)
            if (only ? std::strcmp(name, only) == 0 : each == &scenarios) chosen.emplace_back(name, scenario);
    if (turns <= 0 || chosen.empty()) {
        std::fprintf(stderr, "usage: kp_thread_tests [TURNS [SCENARIO]]; scenarios:\n");
        for (const auto& [name, scenario] : scenarios) std::fprintf(stderr, "  %s\n", name);
        return 2;
    }
    // Work that is done when vkQueueSubmit returns, and work that a thread of the driver does later.
    for (const char* driver :
         {"memory=discrete", "memory=unified,gpu_us=20", "memory=noncoherent,gpu_us=20"}) {
        setenv("KP_NULL_DRIVER", driver, 1);
        for (const auto& families : {std::vector<uint32_t>{0}, std::vector<uint32_t>{0, 0, 1, 1}})
            for (const auto& [name, scenario] : chosen) {
                std::printf("%s, %zu queue(s): %s\n", driver, families.size(), name);
                std::fflush(stdout);
                Bench bench(families);
                try {
                    scenario(bench);
                } catch (const std::exception& error) {
                    expect(false, error.what());
                }
            }
    }
    std::printf(failures ? "%d failure(s)\n" : "all right\n", failures.load());
    return failures ? 1 : 0;
}
