#include "instruments/instrumenter.hpp"

#include <algorithm>

namespace kp {

// Instructions of NonSemantic.DebugPrintf.
constexpr uint32_t debug_printf = 1;

void Instrumenter::add_scalar(Code& into, uint32_t value, Instruction type, std::vector<uint32_t>& to) {
    const uint32_t uint = builder_.uint_type();
    if (type.op() == spv::OpTypeBool) {
        to.push_back(builder_.value(into, spv::OpSelect, uint,
                                    {value, builder_.uint_constant(1), builder_.uint_constant(0)}));
        return;
    }
    uint32_t width = type[2];
    if (width < 32) {  // wider, so that it is a word
        if (type.op() == spv::OpTypeFloat)
            value = builder_.value(into, spv::OpFConvert, builder_.type(spv::OpTypeFloat, {32}), {value});
        else if (type[3] != 0)
            value = builder_.value(into, spv::OpSConvert, builder_.type(spv::OpTypeInt, {32, 1}), {value});
        else
            value = builder_.value(into, spv::OpUConvert, uint, {value});
        width = 32;
    }
    if (width == 64) {
        const uint32_t pair =
            builder_.value(into, spv::OpBitcast, builder_.type(spv::OpTypeVector, {uint, 2}), {value});
        for (uint32_t i = 0; i < 2; ++i)
            to.push_back(builder_.value(into, spv::OpCompositeExtract, uint, {pair, i}));
        return;
    }
    const bool is_word = type.op() == spv::OpTypeInt && type[3] == 0;
    to.push_back(is_word ? value : builder_.value(into, spv::OpBitcast, uint, {value}));
}

bool Instrumenter::add_words(Code& into, uint32_t value, std::vector<uint32_t>& to, std::string& letters) {
    Instruction type = module_.find(module_.type_of(value));
    uint32_t count = 1;
    const bool is_vector = type.op() == spv::OpTypeVector;
    if (is_vector) {
        count = type[3];
        if (count > 16) return false;  // no vector, in a module that nobody checked
        type = module_.find(type[2]);
    }
    char letter = 'b';
    if (type.op() == spv::OpTypeFloat)
        letter = type[2] == 64 ? 'd' : 'f';
    else if (type.op() == spv::OpTypeInt)
        letter = type[2] == 64 ? (type[3] ? 'l' : 'm') : (type[3] ? 'i' : 'u');
    else if (type.op() != spv::OpTypeBool)
        return false;
    letters += letter;
    letters += static_cast<char>('0' + std::min(count, 9u));
    for (uint32_t i = 0; i < count; ++i)
        add_scalar(into,
                   is_vector ? builder_.value(into, spv::OpCompositeExtract, type[1], {value, i}) : value,
                   type, to);
    return true;
}

bool Instrumenter::print(Instruction instruction, Code& into) {
    if (!wanted_.printf || printf_set_ == 0 || instruction.op() != spv::OpExtInst ||
        instruction[3] != printf_set_ || instruction[4] != debug_printf)
        return false;
    const Instruction format = module_.find(instruction[5]);
    const uint32_t site =
        new_site(DebugSite::Kind::printf, format.op() == spv::OpString ? format.string(2) : "");
    std::vector<uint32_t> values;
    for (uint32_t i = 6; i < instruction.size(); ++i) {
        const Instruction argument = module_.find(instruction[i]);
        if (argument.op() == spv::OpString) {
            sites_[site].arguments += "s1";
            sites_[site].strings.push_back(argument.string(2));
        } else if (!add_words(into, instruction[i], values, sites_[site].arguments)) {
            sites_[site].arguments += "?1";
        }
    }
    report(into, site, values);
    return true;
}

}  // namespace kp
