#include "spirv/reflect.hpp"

#include "base/error.hpp"
#include "spirv/access_analysis.hpp"
#include "spirv/atomics.hpp"
#include "spirv/constants.hpp"
#include "spirv/declared_format.hpp"
#include "spirv/layout.hpp"
#include "spirv/module.hpp"

#include <algorithm>
#include <bit>
#include <functional>
#include <limits>
#include <map>
#include <tuple>

namespace kp {
namespace {

using spirv::Constants;
using spirv::Instruction;
using spirv::LayoutBuilder;
using spirv::Module;
using spirv::Uses;

constexpr uint32_t no_type = 0;

// A module-scope variable: its storage class and the type of its data.
struct Variable {
    uint32_t id = 0;
    uint32_t storage = 0;
    uint32_t type = no_type;  // of the data; no_type for untyped variables without a declared type
};

// A variable's binding, before variables with the same set and binding are merged.
struct Candidate {
    BindingInfo info;
    bool used = false;
};

const spirv::EntryPoint& find_entry_point(const Module& module, const std::string& entry) {
    std::string compute;
    std::string others;
    const spirv::EntryPoint* only = nullptr;
    size_t compute_count = 0;
    for (const auto& point : module.entry_points) {
        const bool is_compute = point.model == spv::ExecutionModelGLCompute;
        if (is_compute && point.name == entry) return point;
        if (is_compute) {
            only = &point;
            ++compute_count;
        }
        std::string& list = is_compute ? compute : others;
        list += (list.empty() ? "'" : ", '") + point.name + "'";
        if (!is_compute) list += " (" + execution_model_name(point.model) + ")";
    }
    // "main" is the default: if the module has only one compute shader, the choice is clear, whatever its
    // name.
    if (entry == "main" && compute_count == 1) return *only;
    std::string message;
    if (entry == "main" && compute_count > 1)
        message = "the SPIR-V module has " + std::to_string(compute_count) +
                  " compute entry points: " + compute + ": choose one with entry=";
    else if (!compute.empty())
        message = "the SPIR-V module has no compute entry point '" + entry + "'; it has " + compute +
                  ": name one of these";
    else if (!others.empty())
        message = "the SPIR-V module has no compute entry point; it has " + others +
                  ": compile it as a compute shader";
    else
        message = "the SPIR-V module has no entry point; is it a library that was not linked?";
    throw Error(ErrorKind::invalid_argument, message);
}

std::vector<Variable> module_variables(const Module& module) {
    std::vector<Variable> variables;
    for (const Instruction global : module.globals) {
        if (global.op() == spv::OpVariable) {
            const Instruction pointer = module.at(global[1], "the type of a variable");
            if (pointer.op() != spv::OpTypePointer)
                spirv::malformed("variable " + std::to_string(global[2]) + " has a type that is no pointer");
            variables.push_back({global[2], global[3], pointer[3]});
        } else if (global.op() == spirv::newer::untyped_variable) {
            variables.push_back({global[2], global[3], global.size() > 4 ? global[4] : no_type});
        }
    }
    return variables;
}

Access access_of(uint8_t uses) {
    return static_cast<Access>((uses & (Uses::read | Uses::write)) | ((uses & Uses::unknown) ? 3 : 0));
}

bool writable_kind(DescriptorKind kind) {
    return kind == DescriptorKind::storage_buffer || kind == DescriptorKind::storage_image ||
           kind == DescriptorKind::storage_texel_buffer;
}

ScalarKind scalar_of(const Module& module, uint32_t type) {
    const Instruction instruction = module.find(type);
    if (instruction.op() == spv::OpTypeFloat) return ScalarKind::floating;
    if (instruction.op() == spv::OpTypeInt)
        return instruction[3] ? ScalarKind::signed_int : ScalarKind::unsigned_int;
    return ScalarKind::none;
}

class Reflector {
public:
    Reflector(std::span<const uint32_t> words, const std::string& entry,
              std::span<const SpecValue> specialization)
        : module_(words),
          entry_(find_entry_point(module_, entry)),
          constants_(module_, specialization),
          layouts_(module_, constants_),
          access_(module_, entry_.function),
          variables_(module_variables(module_)) {}

    ShaderInfo reflect();

private:
    [[nodiscard]] std::vector<BindingInfo> bindings();
    [[nodiscard]] std::optional<Candidate> binding_of(const Variable& variable);
    [[nodiscard]] bool describe_image(uint32_t type, BindingInfo& info) const;
    [[nodiscard]] bool decorated(const Variable& variable, uint32_t type, spv::Decoration decoration) const;
    [[nodiscard]] std::optional<PushConstantInfo> push_constants();
    [[nodiscard]] std::vector<SpecConstantInfo> spec_constants() const;
    [[nodiscard]] std::map<uint32_t, std::string> derived_names() const;
    [[nodiscard]] uint64_t shared_bytes();
    void set_local_size(ShaderInfo& info) const;
    void set_local_size_from_ids(ShaderInfo& info, uint32_t axis, uint32_t id) const;

    Module module_;
    const spirv::EntryPoint& entry_;
    Constants constants_;
    LayoutBuilder layouts_;
    spirv::AccessAnalysis access_;
    std::vector<Variable> variables_;
};

ShaderInfo Reflector::reflect() {
    ShaderInfo info;
    info.version = module_.version;
    info.entry = entry_.name;
    for (const auto& point : module_.entry_points) info.entry_points.push_back({point.name, point.model});
    info.bindings = bindings();
    info.push_constants = push_constants();
    info.spec_constants = spec_constants();
    set_local_size(info);
    info.capabilities = module_.capabilities;
    info.extensions = module_.extensions;
    info.atomic_features = spirv::atomic_features(module_);
    info.shared_bytes = shared_bytes();
    info.physical_storage_buffer = access_.reads_physical() || access_.writes_physical();
    info.physical_storage_writes = access_.writes_physical();
    return info;
}

// True if the variable, or every member of its block, has the decoration.
bool Reflector::decorated(const Variable& variable, uint32_t type, spv::Decoration decoration) const {
    if (module_.decoration(variable.id, decoration)) return true;
    const Instruction block = module_.find(type);
    if (block.op() != spv::OpTypeStruct || block.size() == 2) return false;
    for (uint32_t member = 0; member + 2 < block.size(); ++member)
        if (!module_.member_decoration(type, member, decoration)) return false;
    return true;
}

bool Reflector::describe_image(uint32_t type, BindingInfo& info) const {
    Instruction image = module_.at(type, "the type of a resource");
    if (image.op() == spv::OpTypeSampler) {
        info.kind = DescriptorKind::sampler;
        return true;
    }
    if (image.op() == spv::OpTypeAccelerationStructureKHR) {
        info.kind = DescriptorKind::acceleration_structure;
        return true;
    }
    const bool combined = image.op() == spv::OpTypeSampledImage;
    if (combined) image = module_.at(image[2], "the image type of a sampled image");
    if (image.op() != spv::OpTypeImage) return false;
    const bool storage = image[7] == 2;
    info.image_scalar = scalar_of(module_, image[2]);
    info.image_dim = image[3];
    info.image_arrayed = image[5] != 0;
    info.image_multisampled = image[6] != 0;
    info.image_format = image[8];
    if (image[3] == spv::DimBuffer) {
        // GLSL's samplerBuffer is a sampled image by type, not by descriptor.
        info.kind = storage && !combined ? DescriptorKind::storage_texel_buffer
                                         : DescriptorKind::uniform_texel_buffer;
        // As the array that the host sees.
        if (const DeclaredFormat& format = declared_format(info.image_format); format.channels != 0) {
            TypeLayout texels;
            texels.scalar = format.scalar;
            texels.width = format.width;
            texels.rows = format.channels;
            texels.array = {0};
            texels.array_strides = {format.texel_bytes()};
            info.layout.members = {std::move(texels)};
        }
    } else if (combined) {
        info.kind = DescriptorKind::combined_image_sampler;
    } else {
        info.kind = storage ? DescriptorKind::storage_image : DescriptorKind::sampled_image;
    }
    return true;
}

std::optional<Candidate> Reflector::binding_of(const Variable& variable) {
    if (variable.storage != spv::StorageClassStorageBuffer && variable.storage != spv::StorageClassUniform &&
        variable.storage != spv::StorageClassUniformConstant)
        return std::nullopt;
    const auto set = module_.decoration(variable.id, spv::DecorationDescriptorSet);
    const auto binding = module_.decoration(variable.id, spv::DecorationBinding);
    const uint8_t uses = access_.uses(variable.id);
    if (!set && !binding && uses == 0) return std::nullopt;

    Candidate candidate;
    candidate.used = candidate.info.used = uses != 0;
    BindingInfo& info = candidate.info;
    info.set = set.value_or(0);
    info.binding = binding.value_or(0);
    info.instance_name = module_.name(variable.id);
    // Arrays around the resource are arrays of descriptors; the block's own arrays are inside its struct.
    uint32_t type = variable.type;
    uint64_t count = 1;
    Instruction outer = module_.find(type);
    for (uint32_t depth = 0; outer.op() == spv::OpTypeArray || outer.op() == spv::OpTypeRuntimeArray;
         ++depth) {
        if (depth == 255) spirv::malformed("array type " + std::to_string(type) + " contains itself");
        const uint64_t length =
            outer.op() == spv::OpTypeArray ? std::max(layouts_.array_length(outer), 1u) : 0;
        count = std::min<uint64_t>(count * length, std::numeric_limits<uint32_t>::max());
        type = outer[2];
        outer = module_.find(type);
    }
    info.count = static_cast<uint32_t>(count);

    if (variable.storage == spv::StorageClassUniformConstant) {
        if (type == no_type || !describe_image(type, info)) return std::nullopt;
    } else {
        const bool storage = variable.storage == spv::StorageClassStorageBuffer ||
                             module_.decoration(type, spv::DecorationBufferBlock);  // SPIR-V 1.0 style
        info.kind = storage ? DescriptorKind::storage_buffer : DescriptorKind::uniform_buffer;
        if (type != no_type) info.layout = layouts_.place(type).layout;
        info.block_name = info.layout.type_name;
    }
    info.readonly = decorated(variable, type, spv::DecorationNonWritable);
    info.writeonly = decorated(variable, type, spv::DecorationNonReadable);
    info.atomic = (uses & Uses::atomic) != 0;
    // If the analysis gave up, the shader's own declarations and the kind of the resource still hold.
    uint8_t allowed = Uses::read | Uses::write;
    if (info.readonly || !writable_kind(info.kind)) allowed &= static_cast<uint8_t>(~Uses::write);
    if (info.writeonly) allowed &= static_cast<uint8_t>(~Uses::read);
    const auto stated = static_cast<uint8_t>(uses & (Uses::read | Uses::write));
    info.access = access_of((uses & Uses::unknown) ? stated | allowed : stated);
    return candidate;
}

bool holds_words(const BindingInfo& info) {
    const std::vector<TypeLayout>& members = info.layout.members;
    return members.size() == 1 && members[0].scalar == ScalarKind::unsigned_int && members[0].width == 32 &&
           members[0].rows == 1;
}

// Merges `from`, the same descriptor under another name, into `into`.
void merge(BindingInfo& into, BindingInfo from) {
    const auto is_pair = [&](DescriptorKind a, DescriptorKind b) {
        return (into.kind == a && from.kind == b) || (into.kind == b && from.kind == a);
    };
    // HLSL's [[vk::combinedImageSampler]] declares a texture and a sampler on one binding.
    if (is_pair(DescriptorKind::sampled_image, DescriptorKind::sampler) ||
        is_pair(DescriptorKind::combined_image_sampler, DescriptorKind::sampler) ||
        is_pair(DescriptorKind::combined_image_sampler, DescriptorKind::sampled_image)) {
        if (into.kind == DescriptorKind::sampler) std::swap(into, from);
        into.kind = DescriptorKind::combined_image_sampler;
    } else if (into.kind != from.kind) {
        throw Error(ErrorKind::invalid_argument,
                    "the SPIR-V module declares set " + std::to_string(into.set) + ", binding " +
                        std::to_string(into.binding) + " as a " + to_string(into.kind) + " ('" +
                        into.instance_name + "') and as a " + to_string(from.kind) + " ('" +
                        from.instance_name + "'); a binding has one kind, give one of them another number");
    }
    // Slang makes a variable of a byte-address buffer for each type that it is read as. It is shown as words.
    if (!into.instance_name.empty() && into.instance_name == from.instance_name && holds_words(from)) {
        std::swap(into.layout, from.layout);
        std::swap(into.block_name, from.block_name);
    }
    into.count = into.count == 0 || from.count == 0 ? 0 : std::max(into.count, from.count);
    into.access = static_cast<Access>(static_cast<uint8_t>(into.access) | static_cast<uint8_t>(from.access));
    into.readonly = into.readonly && from.readonly;
    into.writeonly = into.writeonly && from.writeonly;
    into.atomic = into.atomic || from.atomic;
}

std::vector<BindingInfo> Reflector::bindings() {
    std::vector<Candidate> candidates;
    for (const Variable& variable : variables_)
        if (auto candidate = binding_of(variable)) candidates.push_back(std::move(*candidate));
    // Used ones come first: another entry point's variable at the same binding must not name or shape this
    // one's.
    std::stable_sort(candidates.begin(), candidates.end(), [](const Candidate& a, const Candidate& b) {
        return std::tuple(a.info.set, a.info.binding, !a.used) <
               std::tuple(b.info.set, b.info.binding, !b.used);
    });
    std::vector<BindingInfo> merged;
    bool used = false;
    for (Candidate& candidate : candidates) {
        BindingInfo& info = candidate.info;
        if (merged.empty() || merged.back().set != info.set || merged.back().binding != info.binding) {
            used = candidate.used;
            merged.push_back(std::move(info));
        } else if (candidate.used || !used) {
            merge(merged.back(), std::move(info));
        }
    }
    return merged;
}

// A module may have a block for each entry point. Takes the blocks of this entry point, or all blocks if it
// uses none.
std::optional<PushConstantInfo> Reflector::push_constants() {
    std::vector<Variable> blocks;
    for (const Variable& variable : variables_)
        if (variable.storage == spv::StorageClassPushConstant && variable.type != no_type)
            blocks.push_back(variable);
    const auto is_used = [&](const Variable& variable) { return access_.uses(variable.id) != 0; };
    if (std::any_of(blocks.begin(), blocks.end(), is_used)) std::erase_if(blocks, std::not_fn(is_used));

    std::optional<PushConstantInfo> merged;
    for (const Variable& variable : blocks) {
        TypeLayout layout = layouts_.place(variable.type).layout;
        if (!merged) {
            merged.emplace();
            merged->instance_name = module_.name(variable.id);
            merged->block_name = layout.type_name;
            merged->layout = std::move(layout);
            continue;
        }
        auto& members = merged->layout.members;
        for (TypeLayout& member : layout.members) {
            const bool known = std::any_of(members.begin(), members.end(), [&](const TypeLayout& other) {
                return other.offset == member.offset && other.name == member.name;
            });
            if (!known) members.push_back(std::move(member));
        }
        merged->layout.size = std::max(merged->layout.size, layout.size);
    }
    if (!merged) return merged;
    auto& members = merged->layout.members;
    std::stable_sort(members.begin(), members.end(),
                     [](const TypeLayout& a, const TypeLayout& b) { return a.offset < b.offset; });
    constexpr uint64_t largest = std::numeric_limits<uint32_t>::max() - 3;
    const uint64_t first = members.empty() ? 0 : std::min(members.front().offset, largest) / 4 * 4;
    const uint64_t end = (std::min(merged->layout.size, largest) + 3) / 4 * 4;
    merged->offset = static_cast<uint32_t>(first);
    merged->size = static_cast<uint32_t>(end - std::min(first, end));
    return merged;
}

// Names for constants that have none: the name of an expression that only converts the constant's type.
// Compilers put such an expression between a constant and the source's name.
std::map<uint32_t, std::string> Reflector::derived_names() const {
    std::map<uint32_t, std::string> names;
    for (const Instruction global : module_.globals) {
        if (global.op() != spv::OpSpecConstantOp || module_.name(global[2]).empty()) continue;
        const uint32_t operation = global[3];
        if (operation != spv::OpUConvert && operation != spv::OpSConvert && operation != spv::OpFConvert &&
            operation != spv::OpINotEqual && operation != spv::OpSelect)
            continue;
        uint32_t only = 0;
        uint32_t found = 0;
        for (uint32_t i = 4; i < global.size(); ++i) {
            const uint32_t op = module_.find(global[i]).op();
            if (op < spv::OpSpecConstantTrue || op > spv::OpSpecConstantOp || global[i] == only) continue;
            only = global[i];
            ++found;
        }
        if (found == 1) names.emplace(only, module_.name(global[2]));
    }
    return names;
}

// "16 (TILE)"
std::string default_text(const SpecConstantInfo& constant) {
    const uint64_t bits = constant.default_bits;
    std::string text;
    switch (constant.scalar) {
    case ScalarKind::boolean: text = bits != 0 ? "true" : "false"; break;
    case ScalarKind::floating:
        text = constant.width == 64   ? std::to_string(std::bit_cast<double>(bits))
               : constant.width == 32 ? std::to_string(std::bit_cast<float>(static_cast<uint32_t>(bits)))
                                      : "a 16-bit float";
        break;
    case ScalarKind::bfloat16: text = std::to_string(bfloat16_value(bits)); break;
    case ScalarKind::signed_int: {
        const uint32_t unused = 64 - std::clamp(constant.width, 1u, 64u);
        text = std::to_string(static_cast<int64_t>(bits << unused) >> unused);
        break;
    }
    default: text = std::to_string(bits);
    }
    return text + " (" +
           (constant.name.empty() ? "without a name, such as the local size's" : constant.name) + ")";
}

std::vector<SpecConstantInfo> Reflector::spec_constants() const {
    const std::map<uint32_t, std::string> derived = derived_names();
    const Constants defaults(module_);
    std::map<uint32_t, SpecConstantInfo> by_id;
    for (const Instruction global : module_.globals) {
        const uint32_t op = global.op();
        if (op != spv::OpSpecConstantTrue && op != spv::OpSpecConstantFalse && op != spv::OpSpecConstant)
            continue;
        const auto spec_id = module_.decoration(global[2], spv::DecorationSpecId);
        const spirv::ConstantValue* value = defaults.find(global[2]);
        if (!spec_id || !value) continue;
        SpecConstantInfo constant;
        constant.id = *spec_id;
        constant.name = module_.name(global[2]);
        if (const auto name = derived.find(global[2]); constant.name.empty() && name != derived.end())
            constant.name = name->second;
        constant.default_bits = value->bits[0];
        constant.scalar = spirv::scalar_kind(value->type);
        constant.width = constant.scalar == ScalarKind::boolean ? 32 : value->type.width;
        // Several constants may share an id; a given value applies to all of them. Without a value, each has
        // its own default (glslang adds one, with 1, for each local_size_x_id). Shows the default of the one
        // with a name.
        const auto [entry, inserted] = by_id.emplace(constant.id, constant);
        SpecConstantInfo& shown = entry->second;
        if (inserted) continue;
        const bool differ = shown.default_bits != constant.default_bits || shown.scalar != constant.scalar;
        std::string conflict = shown.conflict;
        if (conflict.empty() && differ) {
            const bool swap = shown.name.empty();
            conflict =
                default_text(swap ? constant : shown) + " and " + default_text(swap ? shown : constant);
        }
        if (shown.name.empty() && !constant.name.empty()) shown = constant;
        shown.conflict = std::move(conflict);
    }
    std::vector<SpecConstantInfo> constants;
    for (auto& [id, constant] : by_id) constants.push_back(std::move(constant));
    return constants;
}

void Reflector::set_local_size_from_ids(ShaderInfo& info, uint32_t axis, uint32_t id) const {
    const auto size = constants_.integer(id);
    if (!size)
        spirv::malformed("component " + std::to_string(axis) + " of the workgroup size (id " +
                         std::to_string(id) + ") is not an integer constant whose value can be computed");
    info.local_size[axis] = static_cast<uint32_t>(*size);
    info.local_size_spec_id[axis].reset();
    if (module_.find(id).op() == spv::OpSpecConstant)
        info.local_size_spec_id[axis] = module_.decoration(id, spv::DecorationSpecId);
}

void Reflector::set_local_size(ShaderInfo& info) const {
    for (const auto& mode : module_.execution_modes) {
        if (mode.function != entry_.function) continue;
        for (uint32_t axis = 0; axis < 3; ++axis) {
            if (mode.mode == spv::ExecutionModeLocalSize && !mode.by_id)
                info.local_size[axis] = mode.operands[axis];
            else if (mode.mode == spv::ExecutionModeLocalSizeId && mode.by_id)
                set_local_size_from_ids(info, axis, mode.operands[axis]);
        }
    }
    // A constant decorated with BuiltIn WorkgroupSize takes precedence over any execution mode.
    for (const Instruction global : module_.globals) {
        const uint32_t op = global.op();
        if (op != spv::OpConstantComposite && op != spv::OpSpecConstantComposite) continue;
        if (module_.decoration(global[2], spv::DecorationBuiltIn) != uint32_t{spv::BuiltInWorkgroupSize})
            continue;
        for (uint32_t axis = 0; axis < 3; ++axis) set_local_size_from_ids(info, axis, global[3 + axis]);
    }
}

// Vulkan counts workgroup memory as if variables were laid out one after the other by the std430 rules.
// Blocks with an explicit layout share the same memory; if one variable is such a block, all are.
uint64_t Reflector::shared_bytes() {
    uint64_t end = 0;
    uint64_t largest_block = 0;
    constexpr uint64_t limit = std::numeric_limits<uint64_t>::max() / 2;
    for (const Variable& variable : variables_) {
        if (variable.storage != spv::StorageClassWorkgroup || variable.type == no_type) continue;
        if (access_.uses(variable.id) == 0) continue;
        const LayoutBuilder::Placed placed = layouts_.place(variable.type);
        const uint64_t size = std::min(placed.layout.size, limit / 2);
        if (module_.decoration(variable.type, spv::DecorationBlock)) {
            largest_block = std::max(largest_block, size);
        } else {
            const uint64_t start = (end + placed.alignment - 1) / placed.alignment * placed.alignment;
            end = std::min(start + size, limit / 2);
        }
    }
    return std::max(end, largest_block);
}

}  // namespace

std::string execution_model_name(uint32_t model) {
    switch (model) {
    case spv::ExecutionModelVertex: return "Vertex";
    case spv::ExecutionModelTessellationControl: return "TessellationControl";
    case spv::ExecutionModelTessellationEvaluation: return "TessellationEvaluation";
    case spv::ExecutionModelGeometry: return "Geometry";
    case spv::ExecutionModelFragment: return "Fragment";
    case spv::ExecutionModelGLCompute: return "GLCompute";
    case spv::ExecutionModelKernel: return "Kernel (OpenCL)";
    default: return "execution model " + std::to_string(model);
    }
}

ShaderInfo reflect(std::span<const uint32_t> words, const std::string& entry,
                   std::span<const SpecValue> specialization) {
    return Reflector(words, entry, specialization).reflect();
}

ShaderInfo as_declared(ShaderInfo declared, const ShaderInfo& runs) {
    for (BindingInfo& binding : declared.bindings) {
        const auto known =
            std::find_if(runs.bindings.begin(), runs.bindings.end(), [&](const BindingInfo& b) {
                return b.set == binding.set && b.binding == binding.binding;
            });
        binding.access = known == runs.bindings.end() ? Access::none : known->access;
        binding.atomic = known != runs.bindings.end() && known->atomic;
        // A file may declare less: what runs has a place in the layout, or drivers end the process.
        binding.used = binding.used || (known != runs.bindings.end() && known->used);
    }
    declared.version = runs.version;
    declared.capabilities = runs.capabilities;
    declared.extensions = runs.extensions;
    declared.atomic_features = runs.atomic_features;
    declared.shared_bytes = runs.shared_bytes;
    declared.physical_storage_buffer = runs.physical_storage_buffer;
    declared.physical_storage_writes = runs.physical_storage_writes;
    return declared;
}

}  // namespace kp
