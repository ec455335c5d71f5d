// Plans of transforms: what VkFFT would run, without a device.
#include "base/error.hpp"
#include "fft/make_plan.hpp"

#include <doctest/doctest.h>

#include <string>
#include <vector>

namespace {

const kp::FftDevice device{0, 32768, 1024, {1024, 1024, 1024}};

kp::FftRequest lengths(uint64_t batches, uint64_t length, uint64_t inner = 1) {
    kp::FftRequest request;
    request.batches = batches;
    request.length = length;
    request.inner = inner;
    return request;
}

// Each dispatch binds known buffers, and reads only what has contents or was written before.
void check_order(const kp::FftPlan& plan, bool from_input) {
    std::vector<bool> written(plan.buffers.size());
    written[0] = !from_input;
    if (from_input) written[1] = true;
    for (size_t i = 0; i < written.size(); ++i)
        if (!plan.buffers[i].contents.empty()) written[i] = true;
    for (const kp::FftPlan::Dispatch& each : plan.run) {
        REQUIRE(each.program < plan.programs.size());
        REQUIRE(each.buffers.size() >= 2);
        for (size_t binding = 0; binding < each.buffers.size(); ++binding) {
            REQUIRE(each.buffers[binding] < plan.buffers.size());
            if (binding != 1) CHECK(written[each.buffers[binding]]);
        }
        written[each.buffers[1]] = true;
    }
    CHECK(written[0]);
}

}  // namespace

TEST_CASE("a short transform is one dispatch") {
    const kp::FftPlan plan = kp::plan_fft(device, lengths(3, 16));
    REQUIRE(plan.run.size() == 1);
    CHECK(plan.buffers.front().bytes == 3 * 16 * 8);
    CHECK(plan.programs[plan.run[0].program].find("void main()") != std::string::npos);
    check_order(plan, false);
}

TEST_CASE("plans bind and order what they use, for all ways to transform") {
    for (const uint64_t length : {2ull, 13ull, 1000ull, 4096ull, 100100ull, 1ull << 20})
        for (const bool inverse : {false, true})
            for (const bool from_input : {false, true})
                for (const bool doubles : {false, true}) {
                    CAPTURE(length);
                    kp::FftRequest request = lengths(2, length, length < 100 ? 3 : 1);
                    request.inverse = inverse;
                    request.from_input = from_input;
                    request.doubles = doubles;
                    check_order(kp::plan_fft(device, request), from_input);
                }
}

TEST_CASE("a length with a large prime factor is refused") {
    CHECK_THROWS_AS(kp::plan_fft(device, lengths(1, 17)), kp::Error);
}

TEST_CASE("the same plan has the same bytes") {
    for (const uint64_t length : {13ull, 1000ull, 10010ull, 1ull << 16}) {
        const kp::FftPlan a = kp::plan_fft(device, lengths(1, length));
        const std::vector<char> other(1 << 20, 'x');  // what memory that is used again may have
        const kp::FftPlan b = kp::plan_fft(device, lengths(1, length));
        CHECK(a.programs == b.programs);
        for (size_t i = 0; i < a.buffers.size(); ++i) CHECK(a.buffers[i].contents == b.buffers[i].contents);
    }
}

TEST_CASE("large grids are not split") {
    const kp::FftPlan plan = kp::plan_fft(device, lengths(70000, 2, 2));
    REQUIRE(plan.run.size() == 1);
    CHECK(plan.run[0].groups[2] == 70000);
}
