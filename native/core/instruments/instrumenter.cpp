#include "instruments/instrumenter.hpp"
#include "spirv/operands.hpp"

#include <algorithm>
#include <initializer_list>
#include <iterator>
#include <tuple>

namespace kp {
namespace {

using spirv::bound_word;
using spirv::ends_block;
using spirv::header_words;
using spirv::Instruction;

// Instructions of NonSemantic.Shader.DebugInfo.100.
constexpr uint32_t debug_source = 35;
constexpr uint32_t debug_line = 103;
constexpr uint32_t debug_no_line = 104;

// The opcodes before a module's types, constants and variables.
bool is_preamble(uint32_t op) {
    switch (op) {
    case spv::OpCapability:
    case spv::OpExtension:
    case spv::OpExtInstImport:
    case spv::OpMemoryModel:
    case spv::OpEntryPoint:
    case spv::OpExecutionMode:
    case spv::OpExecutionModeId:
    case spv::OpString:
    case spv::OpSourceExtension:
    case spv::OpSource:
    case spv::OpSourceContinued:
    case spv::OpName:
    case spv::OpMemberName:
    case spv::OpModuleProcessed:
    case spv::OpDecorate:
    case spv::OpMemberDecorate:
    case spv::OpGroupDecorate:
    case spv::OpGroupMemberDecorate:
    case spv::OpDecorationGroup:
    case spv::OpDecorateId:
    case spv::OpDecorateString:
    case spv::OpMemberDecorateString: return true;
    default: return false;
    }
}

}  // namespace

std::string Instrumenter::why_not() const {
    for (const auto& entry : module_.entry_points)
        if (entry.model != spv::ExecutionModelGLCompute)
            return "the module has entry points of other stages than compute";
    if (words_[bound_word] > 0x200000) return "the module has too many ids";
    return "";
}

void Instrumenter::find_names() {
    for (const auto& [id, name] : module_.instruction_sets) {
        if (name == "NonSemantic.DebugPrintf") printf_set_ = id;
        if (name.starts_with("NonSemantic.Shader.DebugInfo.")) debug_info_set_ = id;
    }
    for (const Instruction each : module_.globals)
        if (const uint32_t id = each.result()) globals_.insert(id);
    for (const auto& function : module_.functions()) globals_.insert(function.id);
}

void Instrumenter::follow_lines(Instruction instruction) {
    if (line_ != 0) last_line_ = line_;
    const uint32_t op = instruction.op();
    const auto name_of = [&](uint32_t id) {
        const Instruction text = module_.find(id);
        return text.op() == spv::OpString ? text.string(2) : std::string();
    };
    // A line ends with its block, and compilers do not repeat it in the blocks of a `?:` and behind it: these
    // begin with the line of the first block that names them.
    const auto pass_on = [&](std::initializer_list<uint32_t> blocks) {
        if (line_ == 0) return;
        for (const uint32_t block : blocks) entered_.try_emplace(block, file_, line_);
    };
    if (op == spv::OpLine) {
        file_ = name_of(instruction[1]);
        line_ = instruction[2];
    } else if (op == spv::OpLabel) {
        if (const auto found = entered_.find(instruction[1]); found != entered_.end())
            std::tie(file_, line_) = found->second;
    } else if (op == spv::OpSelectionMerge) {
        pass_on({instruction[1]});
    } else if (op == spv::OpLoopMerge) {
        pass_on({instruction[1], instruction[2]});
    } else if (op == spv::OpNoLine || ends_block(op) || op == spv::OpFunctionEnd) {
        if (op == spv::OpBranch) pass_on({instruction[1]});
        if (op == spv::OpBranchConditional) pass_on({instruction[2], instruction[3]});
        line_ = 0;
    } else if (op == spv::OpExtInst && debug_info_set_ != 0 && instruction[3] == debug_info_set_) {
        if (instruction[4] == debug_line) {
            const Instruction source = module_.find(instruction[5]);
            if (source.op() == spv::OpExtInst && source[4] == debug_source) file_ = name_of(source[5]);
            line_ = static_cast<uint32_t>(constants_.integer(instruction[6]).value_or(0));
        } else if (instruction[4] == debug_no_line) {
            line_ = 0;
        }
    }
}

bool Instrumenter::has(spv::Capability capability) const {
    const auto& all = module_.capabilities;
    return std::find(all.begin(), all.end(), uint32_t{capability}) != all.end();
}

std::string Instrumenter::place() const {
    const uint32_t line = line_ != 0 ? line_ : last_line_;
    return line != 0 ? " in " + file_ + ":" + std::to_string(line) : "";
}

bool Instrumenter::is_full() {
    if (sites_.size() < most_sites) return false;
    problem_ = "it has more than " + std::to_string(most_sites) + " accesses, barriers and loops";
    return true;
}

uint32_t Instrumenter::new_site(DebugSite::Kind kind, std::string text) {
    DebugSite site;
    site.kind = kind;
    site.file = line_ != 0 ? file_ : "";
    site.line = line_;
    site.text = std::move(text);
    sites_.push_back(std::move(site));
    return static_cast<uint32_t>(sites_.size() - 1);
}

void Instrumenter::rewrite(Instruction instruction, Code& into) {
    follow_lines(instruction);
    if (print(instruction, into)) return;
    before_barrier(instruction, into);
    count_turn(instruction, into);
    track(instruction, into);
    if (instruction.op() == spv::OpFunction) in_entry_ = entries_.contains(instruction.result());
    if (instruction.op() == spv::OpReturn && in_entry_) end_entry(into);
    if (instruction.op() == spv::OpLoopMerge && (wanted_.races || wanted_.bounds))
        into.emit(spv::OpLoopMerge, {instruction[1], instruction[2], spv::LoopControlDontUnrollMask});
    else if (!check(instruction, into))
        into.copy(instruction);
    after_barrier(instruction, into);
}

// Variables come first in a block; nothing may stand before them.
void Instrumenter::find_starts() {
    for (const auto& entry : module_.entry_points) entries_.insert(entry.function);
    if (!wanted_.barriers && !wanted_.races) return;
    for (const auto& entry : module_.entry_points)
        if (const auto* function = module_.function(entry.function)) {
            const auto& body = function->body;
            size_t after = 0;
            for (size_t i = 0; i < body.size() && !ends_block(body[i].op()); ++i)
                if (body[i].op() == spv::OpVariable || body[i].op() == spv::OpLabel) after = i + 1;
            if (after < body.size()) starts_.insert(body[after].words().data());
        }
}

void Instrumenter::copy_functions() {
    bool inside = false;
    for (size_t offset = header_words; offset < words_.size(); offset += words_[offset] >> 16) {
        const Instruction instruction(words_.subspan(offset, words_[offset] >> 16));
        inside = inside || instruction.op() == spv::OpFunction;
        if (!inside) continue;
        if (starts_.contains(&words_[offset])) start_counts(body_);
        rewrite(instruction, body_);
    }
    if (start_ != 0) write_start();
    if (end_ != 0) write_end();
}

std::vector<uint32_t> Instrumenter::assembled() const {
    std::vector<uint32_t> made(words_.begin(), words_.begin() + header_words);
    const auto put = [&](const Code& code) {
        made.insert(made.end(), code.words().begin(), code.words().end());
    };
    const bool all_variables = module_.version >= 0x00010400;  // in an entry point's list
    const bool storage_buffers = module_.version >= 0x00010300;
    bool preamble = true;
    bool extended = storage_buffers;
    for (size_t offset = header_words; offset < words_.size(); offset += words_[offset] >> 16) {
        const Instruction instruction(words_.subspan(offset, words_[offset] >> 16));
        const uint32_t op = instruction.op();
        if (op == spv::OpFunction) break;
        if (!extended && op != spv::OpCapability) {
            static constexpr char name[] = "SPV_KHR_storage_buffer_storage_class";
            std::vector<uint32_t> text((sizeof name + 3) / 4, 0);
            std::copy(std::begin(name), std::end(name), reinterpret_cast<char*>(text.data()));
            Code extension;
            extension.emit(spv::OpExtension, text);
            put(extension);
            extended = true;
        }
        if (preamble && !is_preamble(op)) {
            put(builder_.annotations);
            preamble = false;
        }
        made.insert(made.end(), words_.begin() + static_cast<ptrdiff_t>(offset),
                    words_.begin() + static_cast<ptrdiff_t>(offset + instruction.size()));
        if (op != spv::OpEntryPoint) continue;
        uint32_t first = 0;
        (void)instruction.string(3, &first);
        const size_t start = made.size() - instruction.size();
        const auto add = [&](uint32_t variable) {
            if (std::find(made.begin() + static_cast<ptrdiff_t>(start + first), made.end(), variable) !=
                made.end())
                return;
            made.push_back(variable);
            made[start] += 1u << 16;
        };
        for (const auto& [which, input] : inputs_) add(input.first);
        if (all_variables)
            for (const uint32_t variable : variables_) add(variable);
    }
    if (preamble) put(builder_.annotations);
    put(builder_.globals);
    put(body_);
    put(builder_.functions);
    made[bound_word] = builder_.bound();
    return made;
}

Instrumented Instrumenter::run() {
    Instrumented result;
    find_names();
    find_starts();
    find_shadowed();
    copy_functions();
    if (sites_.empty() && problem_.empty()) return result;
    result.problem = problem_.empty() ? why_not() : problem_;
    if (!result.problem.empty()) return result;
    result.words = assembled();
    result.sites = std::move(sites_);
    result.shadowed.buffers.resize(shadowed_.size());
    for (const auto& [key, found] : shadowed_) result.shadowed.buffers[found.number] = key;
    result.shadowed.any = shadow_ != 0;
    result.shadowed.granule = granule_;
    result.shadowed.smallest = smallest_;
    return result;
}

Instrumented instrumented(std::span<const uint32_t> words, const Instruments& wanted, uint32_t set,
                          uint32_t module_number) {
    if (!wanted.any()) return {};
    return Instrumenter(words, wanted, set, module_number).run();
}

}  // namespace kp
