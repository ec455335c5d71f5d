// HostEdges against a model of single bytes: random recordings of downloads and uploads of parts, on a device
// and a host that see each other's bytes only where the rules allow it.
#include "record/host_edges.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <random>
#include <vector>

namespace {

using kp::HostEdges;
using kp::HostPiece;

struct Step {
    bool down = false;
    uint32_t copy = 0;
    uint64_t offset = 0;
    uint64_t size = 0;
};

struct Bytes {
    std::vector<int> device, memory,
        host;  // the device's side, the host copy in memory, the host copy as the CPU sees it
};

}  // namespace

TEST_CASE("whole atoms stay in place, and a range to the end of the copy does") {
    HostEdges edges;
    edges.begin(64);
    edges.download(3, 64, 128, 1000);
    edges.download(5, 0, 100, 100);
    edges.settle();
    CHECK(edges.empty());
    REQUIRE(edges.landings().size() == 2);
    CHECK(edges.landings()[0].piece.slot == HostPiece::in_place);
    CHECK(edges.downloaded(3, 64, 128).size() == 1);
}

TEST_CASE("two parts that fill an atom together need no slot; two that do not share one") {
    HostEdges edges;
    edges.begin(64);
    edges.download(1, 0, 24, 256);
    edges.download(1, 24, 40, 256);
    edges.settle();
    CHECK(edges.empty());

    edges.begin(64);
    edges.download(1, 4, 8, 256);
    edges.download(1, 32, 8, 256);
    edges.settle();
    CHECK(edges.slot_bytes() == 64);
    REQUIRE(edges.landings().size() == 2);
    CHECK(edges.landings()[0].piece.slot == 4);
    CHECK(edges.landings()[1].piece.slot == 32);
}

TEST_CASE(
    "random recordings: every byte arrives, and the device never writes an atom that the host may write") {
    std::mt19937 random(7);
    const auto below = [&](uint64_t n) { return std::uniform_int_distribution<uint64_t>(0, n - 1)(random); };
    for (int turn = 0; turn < 4000; ++turn) {
        const uint64_t atom = uint64_t{4} << below(3);
        std::vector<uint64_t> lengths;
        for (uint64_t i = 0, n = 1 + below(2); i < n; ++i) lengths.push_back(1 + below(5 * atom));
        std::vector<Step> steps;
        for (uint64_t i = 0, n = 1 + below(6); i < n; ++i) {
            const auto copy = static_cast<uint32_t>(below(lengths.size()));
            const uint64_t offset = below(lengths[copy]);
            steps.push_back({below(3) != 0, copy, offset, 1 + below(lengths[copy] - offset)});
        }
        HostEdges edges;
        edges.begin(atom);
        std::vector<std::vector<bool>> downloaded;
        for (const uint64_t length : lengths) downloaded.emplace_back(length, false);
        for (const Step& step : steps) {
            if (!step.down) continue;
            edges.download(step.copy, step.offset, step.size, lengths[step.copy]);
            for (uint64_t i = 0; i < step.size; ++i) downloaded[step.copy][step.offset + i] = true;
        }
        edges.settle();

        // The device's bytes count up, the host's count down; `truth` is what one memory without caches would
        // hold.
        std::vector<Bytes> bytes;
        int up = 0;
        int down = 0;
        for (const uint64_t length : lengths) {
            Bytes each;
            for (uint64_t i = 0; i < length; ++i) {
                each.device.push_back(++up);
                each.memory.push_back(--down);
            }
            each.host = each.memory;
            bytes.push_back(each);
        }
        std::vector<Bytes> truth = bytes;
        std::vector<int> slots(edges.slot_bytes(), 0);

        for (const Step& step : steps) {
            Bytes& here = bytes[step.copy];
            Bytes& there = truth[step.copy];
            uint64_t moved = 0;
            uint64_t next = step.offset;
            const auto pieces = step.down ? edges.downloaded(step.copy, step.offset, step.size)
                                          : edges.uploaded(step.copy, step.offset, step.size);
            for (const HostPiece& piece : pieces) {
                REQUIRE(piece.offset == next);
                next += piece.size;
                moved += piece.size;
                for (uint64_t i = 0; i < piece.size; ++i) {
                    const bool in_place = piece.slot == HostPiece::in_place;
                    int& host = in_place ? here.memory[piece.offset + i] : slots.at(piece.slot + i);
                    int& device = here.device[piece.offset + i];
                    (step.down ? host : device) = step.down ? device : host;
                    // A byte that the device writes in place: its atom has no byte that the host may write.
                    if (!step.down || !in_place) continue;
                    const uint64_t first = (piece.offset + i) / atom * atom;
                    for (uint64_t at = first; at < std::min(first + atom, lengths[step.copy]); ++at)
                        REQUIRE(downloaded[step.copy][at]);
                }
            }
            REQUIRE(moved == step.size);
            for (uint64_t i = step.offset; i < step.offset + step.size; ++i)
                (step.down ? there.memory[i] : there.device[i]) =
                    step.down ? there.device[i] : there.memory[i];
        }
        // Meanwhile the host writes all that is not downloaded.
        for (size_t copy = 0; copy < lengths.size(); ++copy)
            for (uint64_t i = 0; i < lengths[copy]; ++i)
                if (!downloaded[copy][i]) bytes[copy].host[i] = truth[copy].memory[i] = --down;
        for (const auto& [copy, piece] : edges.landings())
            for (uint64_t i = 0; i < piece.size; ++i)
                bytes[copy].host[piece.offset + i] = piece.slot == HostPiece::in_place
                                                         ? bytes[copy].memory[piece.offset + i]
                                                         : slots.at(piece.slot + i);
        for (size_t copy = 0; copy < lengths.size(); ++copy) {
            REQUIRE(bytes[copy].host == truth[copy].memory);
            REQUIRE(bytes[copy].device == truth[copy].device);
        }
    }
}
