#include "adapter/device_select.hpp"
#include "base/error.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <random>
#include <set>
#include <string>
#include <vector>

namespace {

using kp::DeviceCandidate;
using kp::DeviceRequest;
using kp::DeviceType;
using kp::Selection;

constexpr uint64_t kGiB = 1ull << 30;

constexpr uint32_t version(uint32_t major, uint32_t minor) { return major << 22 | minor << 12; }

DeviceCandidate device(uint32_t index, const char* name, DeviceType type, uint32_t vendor, uint64_t gib) {
    DeviceCandidate candidate;
    candidate.index = index;
    candidate.name = name;
    candidate.type = type;
    candidate.vendor_id = vendor;
    candidate.uuid[0] = static_cast<uint8_t>(0xa0 + index);
    candidate.uuid[15] = static_cast<uint8_t>(index);
    candidate.api_version = version(1, 3);
    candidate.device_local_bytes = gib * kGiB;
    candidate.timeline_semaphores = true;
    candidate.compute_queue = true;
    return candidate;
}

// A laptop with every kind of device, in an order that is nobody's ranking.
std::vector<DeviceCandidate> laptop() {
    std::vector<DeviceCandidate> all{
        device(0, "llvmpipe (LLVM 15.0.6, 256 bits)", DeviceType::cpu, 0x10005, 32),
        device(1, "Intel(R) Iris(R) Xe Graphics", DeviceType::integrated, 0x8086, 16),
        device(2, "NVIDIA GeForce RTX 3050", DeviceType::discrete, 0x10de, 4),
        device(3, "SwiftShader Device (Subzero)", DeviceType::cpu, 0x1ae0, 64),
        device(4, "Radeon RX 7600 (NAVI33)", DeviceType::discrete, 0x1002, 8),
        device(5, "Virtio-GPU Venus", DeviceType::virtual_gpu, 0x1af4, 2),
    };
    all[0].driver_name = "llvmpipe";
    all[4].driver_name = "radv";
    return all;
}

Selection ask(const std::string& preferences, const std::vector<DeviceCandidate>& candidates = laptop()) {
    return select_device(candidates, {.index = std::nullopt, .preferences = preferences});
}

// The index of the device that was taken; -1 for none.
int taken(const Selection& selection, const std::vector<DeviceCandidate>& candidates = laptop()) {
    return selection.position ? static_cast<int>(candidates[*selection.position].index) : -1;
}

std::string reason_for(const Selection& selection, uint32_t index) {
    for (const kp::Rejection& rejection : selection.passed_over)
        if (rejection.index == index) return rejection.reason;
    return "not passed over";
}

bool contains(const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("device select: with no wish the best is taken: type, then memory, then version, then order") {
    auto candidates = laptop();
    const std::vector<int> best_first{4, 2, 1, 5, 3, 0};
    for (const int expected : best_first) {
        CHECK(taken(ask("", candidates), candidates) == expected);
        std::erase_if(candidates, [&](const auto& d) { return static_cast<int>(d.index) == expected; });
    }

    std::vector<DeviceCandidate> twins{device(0, "A", DeviceType::discrete, 1, 8),
                                       device(1, "B", DeviceType::discrete, 1, 8)};
    CHECK(taken(ask("", twins), twins) == 0);
    CHECK(reason_for(ask("", twins), 1) == "is as good as [0] which comes first");
    twins[0].api_version = version(1, 2);
    CHECK(taken(ask("", twins), twins) == 1);
    CHECK(reason_for(ask("", twins), 0) == "supports an older Vulkan (1.2.0) than [1] does (1.3.0)");
    twins[0].api_version = version(1, 3) | 230;
    CHECK(reason_for(ask("", twins), 1) == "supports an older Vulkan (1.3.0) than [0] does (1.3.230)");

    const std::vector<DeviceCandidate> odd{device(0, "cpu", DeviceType::cpu, 1, 64),
                                           device(1, "odd", DeviceType::other, 1, 1)};
    CHECK(taken(ask("", odd), odd) == 1);
}

TEST_CASE("device select: the order of enumeration does not change which is best") {
    auto candidates = laptop();
    std::mt19937 random(3);
    for (int i = 0; i < 50; ++i) {
        std::shuffle(candidates.begin(), candidates.end(), random);
        CHECK(taken(ask("", candidates), candidates) == 4);
        CHECK(taken(ask("cpu", candidates), candidates) == 3);
        const Selection selection = select_device(candidates, {.index = 1, .preferences = ""});
        CHECK(taken(selection, candidates) == 1);
    }
}

TEST_CASE("device select: an index is the enumeration index, and wins over preferences") {
    for (uint32_t index = 0; index < 6; ++index) {
        const Selection selection = select_device(laptop(), {.index = index, .preferences = "nvidia"});
        CHECK(taken(selection) == static_cast<int>(index));
        CHECK(selection.request == "index " + std::to_string(index));
        CHECK(taken(ask(std::to_string(index))) == static_cast<int>(index));
    }
    const Selection none = select_device(laptop(), {.index = 6, .preferences = ""});
    CHECK(taken(none) == -1);
    CHECK(none.passed_over.size() == 6);
    CHECK(reason_for(none, 2) == "index is 2, not 6");
}

TEST_CASE("device select: part of a name, in any case") {
    CHECK(taken(ask("rtx")) == 2);
    CHECK(taken(ask("GEFORCE rtx 3050")) == 2);
    CHECK(taken(ask("3050")) == 2);  // four digits are a model, not an index
    CHECK(taken(ask("  iris  ")) == 1);
    CHECK(taken(ask("radv")) == 4);  // the driver's name
    CHECK(taken(ask("radeon vii")) == -1);
    CHECK(ask("RTX").request == "name contains 'rtx'");
}

TEST_CASE("device select: vendor words find by vendor id where the name does not say it") {
    CHECK(taken(ask("nvidia")) == 2);
    CHECK(taken(ask("AMD")) == 4);  // "Radeon RX 7600"
    CHECK(taken(ask("intel")) == 1);
    CHECK(taken(ask("lavapipe")) == 0);  // its device is called llvmpipe
    CHECK(taken(ask("llvmpipe")) == 0);
    CHECK(taken(ask("swiftshader")) == 3);
    CHECK(taken(ask("apple")) == -1);
    std::vector<DeviceCandidate> mac{device(0, "Apple M2", DeviceType::integrated, 0x106b, 16)};
    CHECK(taken(ask("apple", mac), mac) == 0);
    std::vector<DeviceCandidate> nameless{device(0, "G", DeviceType::other, 0, 1)};
    CHECK(taken(ask("lavapipe", nameless), nameless) == -1);  // it has no vendor id of its own; 0 is not one
}

TEST_CASE("device select: type words") {
    CHECK(taken(ask("cpu")) == 3);
    CHECK(taken(ask("discrete")) == 4);
    CHECK(taken(ask("Integrated")) == 1);
    CHECK(taken(ask("virtual")) == 5);
    CHECK(taken(ask("gpu")) == 4);
    auto only_cpus = laptop();
    std::erase_if(only_cpus, [](const auto& d) { return d.type != DeviceType::cpu; });
    CHECK(taken(ask("gpu", only_cpus), only_cpus) == -1);
    CHECK(reason_for(ask("gpu", only_cpus), 0) == "is a CPU, not 'gpu'");
}

TEST_CASE("device select: a UUID, whole or its beginning, with or without dashes") {
    CHECK(taken(ask("a2000000-0000-0000-0000-000000000002")) == 2);
    CHECK(taken(ask("A2000000000000000000000000000002")) == 2);
    CHECK(taken(ask("a4000000")) == 4);
    CHECK(taken(ask("a2000000-0000-0000-0000-000000000003")) == -1);
    CHECK(taken(ask("a200000")) == -1);  // seven digits are part of a name
    const Selection none = ask("ffffffff");
    CHECK(reason_for(none, 0) == "UUID is a0000000000000000000000000000000, not 'ffffffff'");
    const std::vector<DeviceCandidate> named{device(0, "accelerator 12345678", DeviceType::other, 0, 1)};
    CHECK(taken(ask("12345678", named), named) == 0);
}

TEST_CASE("device select: the first preference that some usable device fits wins") {
    CHECK(taken(ask("apple, swiftshader ,nvidia")) == 3);
    CHECK(taken(ask("nvidia,amd")) == 2);
    CHECK(taken(ask(",,cpu,")) == 3);
    CHECK(taken(ask(" , ")) == 4);  // says nothing, so the best
    CHECK(ask(" , ").request == "best device");
    CHECK(ask("apple,cpu").request == "vendor or name 'apple', else type 'cpu'");

    auto candidates = laptop();
    candidates[2].timeline_semaphores = false;
    const Selection fallback = ask("nvidia,cpu", candidates);
    CHECK(taken(fallback, candidates) == 3);
    CHECK(reason_for(fallback, 2) == "lacks the feature timelineSemaphore");
    CHECK(reason_for(fallback, 0) == "has 32.0 GiB of device memory; [3] has 64.0 GiB");
    CHECK(reason_for(fallback, 4) == "is a discrete GPU, not 'cpu'");
}

TEST_CASE("device select: what kompute_py cannot use is never taken, and every lack is named") {
    const auto alone = [](auto change) {
        std::vector<DeviceCandidate> candidates{device(0, "old card", DeviceType::discrete, 0x10de, 8)};
        change(candidates[0]);
        const Selection best = ask("", candidates);
        const Selection by_index = select_device(candidates, {.index = 0, .preferences = ""});
        const Selection by_name = ask("old", candidates);
        CHECK(!best.position);
        CHECK(!by_index.position);
        CHECK(!by_name.position);
        CHECK(reason_for(best, 0) == reason_for(by_index, 0));
        CHECK(reason_for(best, 0) == reason_for(by_name, 0));
        return reason_for(best, 0);
    };
    CHECK(alone([](auto& d) { d.api_version = version(1, 1); }) ==
          "supports Vulkan 1.1 only; kompute_py needs 1.2");
    CHECK(alone([](auto& d) { d.api_version = version(0, 9); }) ==
          "supports Vulkan 0.9 only; kompute_py needs 1.2");
    CHECK(alone([](auto& d) { d.compute_queue = false; }) == "has no queue family that computes");
    CHECK(alone([](auto& d) { d.missing_extensions = {"VK_A"}; }) == "lacks the required extension VK_A");
    CHECK(alone([](auto& d) {
              d.missing_extensions = {"VK_A", "VK_B"};
          }) == "lacks the required extensions VK_A, VK_B");
    CHECK(alone([](auto& d) {
              d.timeline_semaphores = false;
              d.compute_queue = false;
          }) == "lacks the feature timelineSemaphore; has no queue family that computes");

    std::vector<DeviceCandidate> new_enough{device(0, "d", DeviceType::cpu, 0, 1)};
    for (const uint32_t good : {version(1, 2), version(1, 4), version(2, 0)}) {
        new_enough[0].api_version = good | 123;  // the patch does not matter
        CHECK(ask("", new_enough).position);
    }
}

TEST_CASE("device select: every device but the taken one is passed over, in order, with a reason") {
    std::mt19937 random(11);
    const std::vector<std::string> words{"",  "cpu", "gpu", "nvidia",         "amd,cpu",
                                         "0", "7",   "x",   "a3000000,intel", "apple"};
    int found = 0;
    int failed = 0;
    for (int round = 0; round < 400; ++round) {
        auto candidates = laptop();
        std::shuffle(candidates.begin(), candidates.end(), random);
        candidates.resize(random() % 7);
        for (auto& d : candidates) {
            if (random() % 4 == 0) d.api_version = version(1, 1);
            if (random() % 8 == 0) d.compute_queue = false;
        }
        const Selection selection = ask(words[random() % words.size()], candidates);
        std::vector<uint32_t> expected;
        for (uint32_t i = 0; i < candidates.size(); ++i)
            if (selection.position != i) expected.push_back(candidates[i].index);
        std::vector<uint32_t> reported;
        for (const kp::Rejection& rejection : selection.passed_over) {
            reported.push_back(rejection.index);
            CHECK(!rejection.reason.empty());
            CHECK(!rejection.name.empty());
        }
        CHECK(reported == expected);
        if (selection.position) {
            ++found;
            const DeviceCandidate& winner = candidates[*selection.position];
            CHECK(winner.compute_queue);
            CHECK(winner.api_version >= version(1, 2));
        } else {
            ++failed;
            CHECK(!explain_failure(selection).empty());
        }
    }
    CHECK(found > 50);
    CHECK(failed > 50);
}

TEST_CASE("device select: a failure is explained with every device, its reason and the fix") {
    auto candidates = laptop();
    candidates.resize(2);
    const std::string text = explain_failure(ask("rtx", candidates));
    CHECK(text.rfind(
              "Requested device (name contains 'rtx') was not found. Devices: [0] llvmpipe (LLVM 15.0.6, 256 "
              "bits): name does not contain 'rtx'; [1] Intel(R) Iris(R) Xe Graphics: name does not contain "
              "'rtx'. ",
              0) == 0);
    CHECK(contains(text, "device=None"));

    const std::string list = explain_failure(ask("nvidia,9", candidates));
    CHECK(contains(list, "(vendor or name 'nvidia', else index 9)"));
    CHECK(contains(list, "vendor and name are not 'nvidia'; index is 0, not 9"));

    for (auto& d : candidates) d.api_version = version(1, 0);
    const std::string old = explain_failure(ask("", candidates));
    CHECK(contains(old, "None of the Vulkan devices can be used."));
    CHECK(contains(old, "supports Vulkan 1.0 only"));
    CHECK(contains(old, "Update the driver"));

    CHECK(contains(explain_failure(ask("", {})), "No Vulkan device was found."));
    CHECK(contains(explain_failure(ask("amd", {})),
                   "No Vulkan device was found (requested: vendor or name 'amd')."));
    CHECK(contains(explain_failure(ask("", {})), "mesa-vulkan-drivers"));
}

TEST_CASE("device select: the visible devices are those that the list names, in its order") {
    const auto all = laptop();
    const auto visible = [&](const char* list) { return visible_positions(all, list); };
    using Positions = std::vector<uint32_t>;
    CHECK(visible("0;2") == Positions{0, 2});
    CHECK(visible("4, 1") == Positions{4, 1});
    CHECK(visible("  2 ;\t0 ; ") == Positions{2, 0});
    CHECK(visible("").empty());
    CHECK(visible("  ;  ").empty());
    CHECK(visible("gpu") == Positions{1, 2, 4, 5});
    CHECK(visible("cpu") == Positions{0, 3});
    CHECK(visible("discrete;integrated") == Positions{2, 4, 1});
    CHECK(visible("amd;discrete;4") == Positions{4, 2});
    CHECK(visible("swiftshader") == Positions{3});
    CHECK(visible("a2000000") == Positions{2});
}

TEST_CASE("device select: a visible device that is not there is named, with what there is") {
    auto two = laptop();
    two.resize(2);
    try {
        (void)kp::visible_positions(two, "0;7");
        FAIL("no error");
    } catch (const kp::Error& error) {
        CHECK(error.kind() == kp::ErrorKind::not_found);
        const std::string text = error.what();
        CHECK(contains(text, "'0;7'"));
        CHECK(contains(text, "index 7"));
        CHECK(contains(text, "[0] llvmpipe (LLVM 15.0.6, 256 bits) (UUID a0"));
        CHECK(contains(text, "[1] Intel(R) Iris(R) Xe Graphics"));
    }
}

TEST_CASE("device select: a failure tells of devices that are hidden") {
    auto one = laptop();
    one.resize(1);
    Selection selection = ask("nvidia", one);
    selection.hidden = 5;
    CHECK(contains(explain_failure(selection), "5 more hidden by the list of visible devices"));
    Selection none = ask("", {});
    none.hidden = 1;
    CHECK(contains(explain_failure(none), "No Vulkan device is visible"));
    CHECK(contains(explain_failure(none), "hides the one there is"));
    none.hidden = 3;
    CHECK(contains(explain_failure(none), "hides all 3"));
}

TEST_CASE("an identity names one device, whatever its index") {
    auto candidates = laptop();
    const std::string uuid = "a4000000000000000000000000000004", driver(32, '0');
    CHECK(taken(ask(uuid + ":" + driver + ":4", candidates), candidates) == 4);
    candidates[4].index = 0;  // its index among those that are visible
    candidates[4].vulkan_index = 4;
    CHECK(taken(ask(uuid + ":" + driver + ":4", candidates), candidates) == 0);
    // Where the UUIDs suffice, another place among all devices (of another process, say) does not matter.
    CHECK(ask(uuid + ":" + driver + ":9", candidates).position == 4u);
    candidates[4].driver_uuid[3] = 7;  // of another driver
    const Selection other = ask(uuid + ":" + driver + ":4", candidates);
    CHECK(!other.position);
    CHECK(explain_failure(other).find("UUID of the driver is 00000007") != std::string::npos);
    // No identity: read as a name, as before.
    for (const char* text : {"a4:0:4", "a4000000000000000000000000000004:0:4", ":::"})
        CHECK(!ask(text, candidates).position);
}

TEST_CASE("devices with the same UUIDs are told apart by their place among all") {
    std::vector<DeviceCandidate> twins{device(0, "One", DeviceType::discrete, 1, 4),
                                       device(1, "Two", DeviceType::discrete, 1, 4)};
    for (uint32_t i = 0; i < 2; ++i) {
        twins[i].uuid = {};
        twins[i].has_twin = true;
        twins[i].vulkan_index = i;
    }
    const std::string zeros(32, '0');
    for (uint32_t i = 0; i < 2; ++i)
        CHECK(ask(zeros + ":" + zeros + ":" + std::to_string(i), twins).position == i);
    twins.pop_back();  // hidden: the other one is not taken for it
    const Selection none = ask(zeros + ":" + zeros + ":1", twins);
    CHECK(!none.position);
    CHECK(explain_failure(none).find("another device with the same UUIDs (Vulkan's index 0, not 1)") !=
          std::string::npos);
}

TEST_CASE("entries of a list of visible devices that add none are reported") {
    const auto candidates = laptop();
    const auto repeats = [&](const char* list) {
        std::vector<std::string> repeated;
        (void)kp::visible_positions(candidates, list, &repeated);
        return repeated;
    };
    CHECK(repeats("gpu;nvidia;0") == std::vector<std::string>{"vendor or name 'nvidia'"});
    CHECK(repeats("nvidia;gpu").empty());
    CHECK(repeats("").empty());
}

TEST_CASE("a visible device that is named several times is the next one each time") {
    const auto candidates = laptop();
    const auto visible = [&](const char* list) { return kp::visible_positions(candidates, list); };
    using Positions = std::vector<uint32_t>;
    CHECK(visible("discrete;discrete") == Positions{2, 4});
    CHECK(visible("CPU;cpu") == Positions{0, 3});
    CHECK(visible("gpu;nvidia;gpu") == Positions{1, 2, 4});
    for (const char* list : {"2;2", "cpu;cpu;cpu", "nvidia;0;NVIDIA"}) try {
            (void)visible(list);
            FAIL("no error");
        } catch (const kp::Error& error) {
            CHECK(error.kind() == kp::ErrorKind::out_of_range);
            CHECK(contains(error.what(), "more often than there are such devices"));
        }
}

TEST_CASE("device select: PCI addresses") {
    auto candidates = laptop();
    candidates[2].pci_address = "0000:01:00.0";
    candidates[4].pci_address = "0001:03:00.0";
    CHECK(taken(ask("01:00.0", candidates), candidates) == 2);
    CHECK(taken(ask("0000:01:00.0", candidates), candidates) == 2);
    CHECK(taken(ask("0001:03:00.0", candidates), candidates) == 4);
    const Selection none = ask("03:00.0", candidates);
    CHECK(!none.position);
    CHECK(reason_for(none, 4) == "PCI address is 0001:03:00.0");
    CHECK(reason_for(none, 0) == "does not tell its PCI address");
    CHECK(taken(ask("01:00.9", candidates), candidates) == -1);  // a part of a name
}
