// OpFill: a pattern of any length, repeated over ranges that begin and end at any byte, or over images.
//
// vkCmdFillBuffer writes whole words at offsets that are multiples of four. With a pattern of one, two or
// four bytes, it fills all bytes of a range except those before the first whole word and after the last
// one. These bytes, and all bytes of a longer pattern, are copied from a piece of host memory that holds
// the pattern repeated; buffer copies work at any byte. The piece is long enough that gigabytes need only a
// thousand regions, and belongs to the operation.
//
// Images are copied from it, too: so their texels have the pattern's bytes in every format, which is not
// certain of vkCmdClearColorImage and its conversions.
#include "base/error.hpp"
#include "device/device.hpp"
#include "record/operation.hpp"
#include "record/stream_plan.hpp"
#include "record/substitution.hpp"
#include "resource/buffer.hpp"
#include "resource/image.hpp"

#include <algorithm>
#include <cstring>
#include <tuple>
#include <utility>

namespace kp {
namespace {

constexpr uint64_t longest_piece = uint64_t{1} << 20;

// The shortest pattern that repeats to the same bytes.
std::string shortest(const std::string& pattern) {
    for (size_t period = 1; period < pattern.size(); ++period) {
        if (pattern.size() % period != 0) continue;
        if (std::equal(pattern.begin() + static_cast<ptrdiff_t>(period), pattern.end(), pattern.begin()))
            return pattern.substr(0, period);
    }
    return pattern;
}

// `pattern` from its byte `phase` on.
std::string turned(const std::string& pattern, uint64_t phase) {
    const size_t at = phase % pattern.size();
    return pattern.substr(at) + pattern.substr(0, at);
}

// The commands for one range: a fill of whole words, and copies from the piece.
struct Part {
    ResourceRange range;
    uint32_t word = 0;
    uint64_t words_begin = 0;
    uint64_t words_size = 0;
    std::vector<VkBufferCopy> copies;       // source offsets count from the piece's begin
    std::vector<VkBufferImageCopy> texels;  // as well
};

class Fill final : public Operation {
public:
    Fill(std::shared_ptr<Device> owner, std::vector<Filling> fillings)
        : Operation(std::move(owner), "OpFill"), fillings_(fillings) {
        std::string piece;
        for (auto& filling : fillings) add(std::move(filling), piece);
        if (piece.empty()) return;
        device().retired().collect();
        piece_ = device().memory().allocate_host_copy(piece.size(), "the pattern of an OpFill");
        std::memcpy(piece_.mapped(), piece.data(), piece.size());
        if (!piece_.coherent()) {
            const VkMappedMemoryRange range = piece_.mapped_range();
            device().flush({&range, 1}, "the pattern of an OpFill");
        }
        for (auto& part : parts_) {
            for (auto& copy : part.copies) copy.srcOffset += piece_.offset();
            for (auto& copy : part.texels) copy.bufferOffset += piece_.offset();
        }
    }

    void check() const override {
        for (const auto& part : parts_) part.range.resource->require_init("use");
    }
    // Transfer-only queues may take only regions of certain sizes (minImageTransferGranularity).
    [[nodiscard]] bool needs_compute_queue() const noexcept override {
        return std::ranges::any_of(parts_, [](const Part& part) { return !part.texels.empty(); });
    }
    [[nodiscard]] size_t parts() const noexcept override { return parts_.size(); }

    void declare(StreamPlan& plan) const override {
        for (const auto& part : parts_) plan.overwrite(part.range);
    }

    [[nodiscard]] OperationContent content() const override {
        OperationContent content;
        content.kind = "fill";
        for (const auto& [range, pattern] : fillings_) {
            content.ranges.push_back(range);
            content.patterns.push_back(pattern);
        }
        return content;
    }

    [[nodiscard]] OperationPtr substituted(const Substitution& by) const override {
        auto fillings = fillings_;
        for (auto& filling : fillings) filling.range = by.range(filling.range);
        return make_fill(std::move(fillings));
    }

    void record(Recorder& to) const override {
        for (const auto& part : parts_) {
            if (!part.texels.empty()) {
                const auto& image = static_cast<const Image&>(*part.range.resource);
                to.vk.vkCmdCopyBufferToImage(to.commands, piece_.block_buffer(), image.handle(),
                                             VK_IMAGE_LAYOUT_GENERAL,
                                             static_cast<uint32_t>(part.texels.size()), part.texels.data());
                continue;
            }
            const auto& buffer = static_cast<const Buffer&>(*part.range.resource);
            if (part.words_size != 0)
                to.vk.vkCmdFillBuffer(to.commands, buffer.handle(), part.words_begin, part.words_size,
                                      part.word);
            if (!part.copies.empty())
                to.vk.vkCmdCopyBuffer(to.commands, piece_.block_buffer(), buffer.handle(),
                                      static_cast<uint32_t>(part.copies.size()), part.copies.data());
        }
    }

private:
    void add(Filling filling, std::string& piece) {
        const std::string pattern = shortest(filling.pattern);
        if (const auto* image = dynamic_cast<const Image*>(filling.range.resource.get())) {
            Part part;
            part.range = std::move(filling.range);
            copy_texels(part, piece, pattern, *image);
            parts_.push_back(std::move(part));
            return;
        }
        const auto& buffer = static_cast<const Buffer&>(*filling.range.resource);
        const uint64_t begin = filling.range.offset;
        const uint64_t end = filling.range.end();
        Part part;
        part.range = std::move(filling.range);
        if (begin == end) {
            // Nothing to fill.
        } else if (pattern.size() == 3 || pattern.size() > 4) {
            copy(part, piece, pattern, begin, begin, end);
        } else {
            // A VkBuffer ends on a word, so a range that ends with the tensor is filled to that end.
            const uint64_t last = end == buffer.nbytes() ? buffer.handle_size() : end / 4 * 4;
            part.words_begin = (begin + 3) / 4 * 4;
            part.words_size = last > part.words_begin ? last - part.words_begin : 0;
            if (part.words_size == 0) {
                copy(part, piece, pattern, begin, begin, end);
            } else {
                std::string four = turned(pattern, part.words_begin - begin);
                while (four.size() < 4) four += four;
                for (size_t i = 0; i < 4; ++i)  // little endian, on every host
                    part.word |= static_cast<uint32_t>(static_cast<uint8_t>(four[i])) << (8 * i);
                copy(part, piece, pattern, begin, begin, part.words_begin);
                if (last < end) copy(part, piece, pattern, begin, last, end);
            }
        }
        parts_.push_back(std::move(part));
    }

    // Bytes [from, to) of a range. Its pattern starts at `begin`.
    static void copy(Part& part, std::string& piece, const std::string& pattern, uint64_t begin,
                     uint64_t from, uint64_t to) {
        if (from >= to) return;
        const uint64_t repeats = std::max<uint64_t>(1, std::min(longest_piece, to - from) / pattern.size());
        const std::string unit = turned(pattern, from - begin);
        const uint64_t source = piece.size();
        piece.reserve(source + repeats * unit.size());
        for (uint64_t i = 0; i < repeats; ++i) piece += unit;
        const uint64_t step = repeats * unit.size();
        for (uint64_t at = from; at < to; at += step)
            part.copies.push_back({source, at, std::min(step, to - at)});
    }

    // As many slices (planes or layers) at once as the piece has room for; else as many rows of one.
    static void copy_texels(Part& part, std::string& piece, const std::string& pattern, const Image& image) {
        const ImageShape& shape = image.shape();
        const uint64_t row = uint64_t{shape.width} * shape.format->texel_bytes;
        const uint64_t rows = std::clamp<uint64_t>(longest_piece / row, 1, shape.height);
        const uint64_t count = std::max(shape.depth, shape.layers);
        const uint64_t slices = std::clamp<uint64_t>(longest_piece / (row * shape.height), 1, count);
        piece.resize((piece.size() + 15) / 16 * 16);  // a multiple of any texel's size
        const uint64_t source = piece.size();
        while (piece.size() < source + row * rows * slices) piece += pattern;
        for (uint64_t slice = 0; slice < count; slice += slices) {
            for (uint64_t y = 0; y < shape.height; y += rows) {
                ImageRegion region = image.whole_region();
                (shape.depth > 1 ? region.z : region.layer) = static_cast<uint32_t>(slice);
                (shape.depth > 1 ? region.depth : region.layers) =
                    static_cast<uint32_t>(std::min(slices, count - slice));
                region.y = static_cast<uint32_t>(y);
                region.height = static_cast<uint32_t>(std::min(rows, shape.height - y));
                part.texels.push_back(image.copy(source, region));
            }
        }
    }

    std::vector<Filling> fillings_;  // as given by the caller
    std::vector<Part> parts_;
    Allocation piece_;
};

// A range given twice with one pattern is filled once. Other overlaps are refused, because the fills would
// write in no defined order.
void drop_repeated(std::vector<Filling>& fillings) {
    if (fillings.size() < 2) return;
    std::vector<size_t> order;  // of the ranges by their places: those that overlap are neighbours
    for (size_t i = 0; i < fillings.size(); ++i)
        if (fillings[i].range.size != 0) order.push_back(i);
    std::sort(order.begin(), order.end(), [&](size_t a, size_t b) {
        const ResourceRange::Place left = fillings[a].range.place(), right = fillings[b].range.place();
        return std::tuple(left.memory, left.begin, a) < std::tuple(right.memory, right.begin, b);
    });
    constexpr size_t none = SIZE_MAX;
    size_t last = none;  // the range before, or the one that reaches furthest of those that overlap
    std::pair<size_t, size_t> conflict{none, none};  // the later one of the list first
    std::vector<bool> repeated(fillings.size());
    for (const size_t i : order) {
        if (last == none || !fillings[last].range.overlaps(fillings[i].range)) {
            last = i;
        } else if (fillings[last].range.place() == fillings[i].range.place() &&
                   fillings[last].pattern == fillings[i].pattern) {
            repeated[i] = true;
        } else {
            conflict = std::min(conflict, std::pair(std::max(last, i), std::min(last, i)));
            if (fillings[i].range.place().end > fillings[last].range.place().end) last = i;
        }
    }
    if (conflict.first != none)
        throw Error(ErrorKind::invalid_argument, "OpFill got parts that overlap: the " +
                                                     fillings[conflict.second].range.label() + " and the " +
                                                     fillings[conflict.first].range.label() +
                                                     ". Record one OpFill for each");
    size_t kept = 0;
    for (size_t i = 0; i < fillings.size(); ++i)
        if (!repeated[i] && kept++ != i) fillings[kept - 1] = std::move(fillings[i]);
    fillings.resize(kept);
}

}  // namespace

OperationPtr make_fill(std::vector<Filling> fillings) {
    if (fillings.empty())
        throw Error(ErrorKind::invalid_argument, "OpFill needs at least one tensor or image");
    const std::shared_ptr<Device> device = fillings.front().range.resource->shared_device();
    for (const auto& [range, pattern] : fillings)
        if (&range.resource->device() != device.get())
            throw Error(ErrorKind::invalid_argument, "OpFill got objects of different Managers: the " +
                                                         range.label() + " belongs to another one than the " +
                                                         fillings.front().range.label() +
                                                         ". Copy one of them over with .to(mgr)");
    for (const auto& [range, pattern] : fillings) {
        range.resource->require_init("record");
        const auto* image = dynamic_cast<const Image*>(range.resource.get());
        const uint64_t whole = image ? image->shape().format->texel_bytes : range.size;
        if (pattern.empty() || whole % pattern.size() != 0)
            throw Error(ErrorKind::invalid_argument,
                        "OpFill cannot fill the " + range.label() + " of " + std::to_string(range.size) +
                            " bytes with a pattern of " + std::to_string(pattern.size()) +
                            ": the pattern must fit " + (image ? "a texel " : "") +
                            "a whole number of times");
    }
    drop_repeated(fillings);
    return std::make_shared<Fill>(device, std::move(fillings));
}

}  // namespace kp
