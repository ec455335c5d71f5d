// Adds types, constants and functions to a module, and code to its functions.
#pragma once

#include "spirv/module.hpp"

#include <cstdint>
#include <initializer_list>
#include <map>
#include <span>
#include <utility>
#include <vector>

namespace kp::spirv {

// Instructions, one after the other.
class Code {
public:
    Code() = default;
    explicit Code(std::span<const uint32_t> words) : words_(words.begin(), words.end()) {}

    void emit(uint32_t op, std::span<const uint32_t> operands) {
        words_.push_back(static_cast<uint32_t>(operands.size() + 1) << 16 | op);
        words_.insert(words_.end(), operands.begin(), operands.end());
    }
    void emit(uint32_t op, std::initializer_list<uint32_t> operands) {
        emit(op, std::span(operands.begin(), operands.size()));
    }
    void copy(Instruction instruction) {
        for (uint32_t i = 0; i < instruction.size(); ++i) words_.push_back(instruction[i]);
    }
    void append(const Code& other) { words_.insert(words_.end(), other.words_.begin(), other.words_.end()); }
    [[nodiscard]] const std::vector<uint32_t>& words() const noexcept { return words_; }
    [[nodiscard]] std::vector<uint32_t>& words() noexcept { return words_; }
    [[nodiscard]] bool empty() const noexcept { return words_.empty(); }

private:
    std::vector<uint32_t> words_;
};

class Builder {
public:
    explicit Builder(const Module& module, uint32_t bound) : next_id_(bound) {
        for (const Instruction each : module.globals) {
            if (!is_shared_type(each.op())) continue;
            std::vector<uint32_t> key{each.op()};
            for (uint32_t i = 2; i < each.size(); ++i) key.push_back(each[i]);
            types_.try_emplace(std::move(key), each[1]);
        }
    }

    [[nodiscard]] uint32_t id() noexcept { return next_id_++; }
    [[nodiscard]] uint32_t bound() const noexcept { return next_id_; }

    // The type, of the module or a new one.
    uint32_t type(uint32_t op, std::initializer_list<uint32_t> operands) {
        return type(op, std::span(operands.begin(), operands.size()));
    }
    uint32_t type(uint32_t op, std::span<const uint32_t> operands) {
        std::vector<uint32_t> key{op};
        key.insert(key.end(), operands.begin(), operands.end());
        const auto [entry, added] = types_.try_emplace(std::move(key), next_id_);
        if (added) {
            std::vector<uint32_t> all{id()};
            all.insert(all.end(), operands.begin(), operands.end());
            globals.emit(op, all);
        }
        return entry->second;
    }
    uint32_t void_type() { return type(spv::OpTypeVoid, {}); }
    uint32_t bool_type() { return type(spv::OpTypeBool, {}); }
    uint32_t uint_type() { return type(spv::OpTypeInt, {32, 0}); }
    uint32_t pointer(spv::StorageClass storage, uint32_t to) {
        return type(spv::OpTypePointer, {static_cast<uint32_t>(storage), to});
    }

    // A constant of this type of ints, which has so many bits.
    uint32_t number(uint32_t type, uint32_t width, uint64_t value) {
        const auto [entry, added] = constants_.try_emplace({type, value}, next_id_);
        if (added) {
            const auto low = static_cast<uint32_t>(value);
            if (width > 32)
                globals.emit(spv::OpConstant, {type, id(), low, static_cast<uint32_t>(value >> 32)});
            else
                globals.emit(spv::OpConstant, {type, id(), low});
        }
        return entry->second;
    }
    uint32_t uint_constant(uint32_t value) { return number(uint_type(), 32, value); }
    uint32_t null(uint32_t of) {
        const auto [entry, added] = nulls_.try_emplace(of, next_id_);
        if (added) globals.emit(spv::OpConstantNull, {of, id()});
        return entry->second;
    }

    // Emits an instruction with a result into `into`, and returns the result.
    uint32_t value(Code& into, uint32_t op, uint32_t type, std::initializer_list<uint32_t> operands) {
        return value(into, op, type, std::span(operands.begin(), operands.size()));
    }
    uint32_t value(Code& into, uint32_t op, uint32_t type, std::span<const uint32_t> operands) {
        std::vector<uint32_t> all{type, id()};
        const uint32_t made = all.back();
        all.insert(all.end(), operands.begin(), operands.end());
        into.emit(op, all);
        return made;
    }

    // The module with its additions: `head` is all before its functions, `body` is its functions.
    [[nodiscard]] std::vector<uint32_t> joined(const Code& head, const Code& body) const {
        Code all = head;
        all.append(globals);
        all.append(body);
        all.words()[bound_word] = next_id_;
        return std::move(all.words());
    }

    Code annotations;  // after the module's own
    Code globals;      // after the module's own, before its functions
    Code functions;    // after the module's own

private:
    // Two types of these kinds with the same operands must be one.
    [[nodiscard]] static bool is_shared_type(uint32_t op) noexcept {
        return op == spv::OpTypeVoid || op == spv::OpTypeBool || op == spv::OpTypeInt ||
               op == spv::OpTypeFloat || op == spv::OpTypeVector || op == spv::OpTypePointer ||
               op == spv::OpTypeFunction;
    }

    uint32_t next_id_;
    std::map<std::vector<uint32_t>, uint32_t> types_;
    std::map<std::pair<uint32_t, uint64_t>, uint32_t> constants_;
    std::map<uint32_t, uint32_t> nulls_;
};

}  // namespace kp::spirv
