#include "run/recording_text.hpp"

#include "base/pipeline_cache_file.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <utility>

namespace kp {
namespace {

constexpr std::pair<uint32_t, const char*> stages[] = {
    {VK_PIPELINE_STAGE_DRAW_INDIRECT_BIT, "indirect"},    {VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT, "shader"},
    {VK_PIPELINE_STAGE_TRANSFER_BIT, "transfer"},         {VK_PIPELINE_STAGE_HOST_BIT, "host"},
    {VK_PIPELINE_STAGE_ALL_COMMANDS_BIT, "all commands"},
};

std::string scope(VkPipelineStageFlags mask, VkAccessFlags access) {
    std::string text;
    for (const auto& [bit, name] : stages)
        if (mask & bit) text += (text.empty() ? "" : "+") + std::string(name);
    if (read_access(access)) text += " read";
    if (write_access(access)) text += " write";
    return text;
}

std::string barrier(const Barrier& each) {
    if (each.src_stages == 0) return "";
    return "     | " + scope(each.src_stages, each.src_access) + " before " +
           scope(each.dst_stages, each.dst_access) + "\n";
}

std::string uses(const StreamPlan& plan, const CommandUses& command) {
    std::string text;
    if (command.full_barrier) text += "        may use all memory\n";
    for (uint32_t i = command.first; i < command.first + command.count; ++i) {
        const Use& use = plan.uses()[i];
        const char* what = !writes(use.kind) ? "reads" : reads(use.kind) ? "reads and writes" : "writes";
        plan.each_used(use, [&](const Resource& resource, uint64_t begin, uint64_t end) {
            text += std::string("        ") + what + " the " + resource.label() + ", bytes " +
                    std::to_string(begin) + " to " + std::to_string(end) + "\n";
        });
    }
    return text;
}

}  // namespace

std::string text_of(const BuiltText& built) {
    std::string text = "the " + built.label + ", for queue " + std::to_string(built.queue) + "\n" +
                       barrier(built.barriers.head);
    auto next = built.barriers.barriers.begin();
    const auto to = [&](size_t command) {
        for (; next != built.barriers.barriers.end() && next->before <= command; ++next)
            text += barrier(*next);
    };
    for (size_t i = 0; i < built.operations.size(); ++i) {
        to(i);
        const Operation& operation = *built.operations[i];
        text += std::to_string(i) + "  " + operation.name();
        if (const auto groups = operation.groups(); groups[0] != 0)
            text += ", " + std::to_string(groups[0]) + " x " + std::to_string(groups[1]) + " x " +
                    std::to_string(groups[2]) + " groups";
        if (const std::string* line = built.line(i)) text += " (" + *line + ")";
        text += "\n" + uses(built.plan, built.plan.commands()[i]);
    }
    to(built.operations.size());
    return text + barrier(built.barriers.tail);
}

std::string keep_text(const std::string& folder, const std::string& label, const std::string& text) {
    std::string name;
    for (const char each : label)
        if (std::isalnum(static_cast<unsigned char>(each)))
            name += each;
        else if (!name.empty() && name.back() != '_')
            name += '_';
    name.resize(std::min<size_t>(name.size(), 60));
    if (name.ends_with('_')) name.pop_back();
    std::array<char, 24> digits{};
    std::snprintf(digits.data(), digits.size(), "%012llx",
                  static_cast<unsigned long long>(fnv1a(text.data(), text.size()) & 0xFFFFFFFFFFFF));
    const auto path = std::filesystem::path(folder) / ("recording-" + name + "-" + digits.data() + ".txt");
    std::error_code ignored;
    if (std::filesystem::exists(path, ignored)) return "";
    std::ofstream file(path, std::ios::binary);
    file << text;
    file.close();
    return file ? "" : "The recording of the " + label + " could not be kept in " + path.string();
}

}  // namespace kp
