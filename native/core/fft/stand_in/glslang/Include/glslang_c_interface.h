// In the place of glslang's header for VkFFT: what VkFFT uses of it (fft/recorder.hpp has the functions).
//
// glslang_resource_t has the members of glslang 11 in their order: VkFFT 1.2 gives them by position, later
// ones by name. Nothing reads them.
#pragma once

enum {
    GLSLANG_SOURCE_GLSL,
    GLSLANG_STAGE_COMPUTE,
    GLSLANG_CLIENT_VULKAN,
    GLSLANG_TARGET_VULKAN_1_0,
    GLSLANG_TARGET_VULKAN_1_1,
    GLSLANG_TARGET_SPV,
    GLSLANG_TARGET_SPV_1_0,
    GLSLANG_TARGET_SPV_1_3,
    GLSLANG_NO_PROFILE,
    GLSLANG_MSG_DEFAULT_BIT,
    GLSLANG_MSG_SPV_RULES_BIT,
    GLSLANG_MSG_VULKAN_RULES_BIT,
};
typedef int glslang_target_client_version_t;
typedef int glslang_target_language_version_t;
typedef struct glslang_shader_s glslang_shader_t;
typedef struct glslang_program_s glslang_program_t;

typedef struct {
    int non_inductive_for_loops, while_loops, do_while_loops, general_uniform_indexing,
        general_attribute_matrix_vector_indexing, general_varying_indexing, general_sampler_indexing,
        general_variable_indexing, general_constant_matrix_vector_indexing;
} glslang_limits_t;

typedef struct {
    int max_lights, max_clip_planes, max_texture_units, max_texture_coords, max_vertex_attribs,
        max_vertex_uniform_components, max_varying_floats, max_vertex_texture_image_units,
        max_combined_texture_image_units, max_texture_image_units, max_fragment_uniform_components,
        max_draw_buffers, max_vertex_uniform_vectors, max_varying_vectors, max_fragment_uniform_vectors,
        max_vertex_output_vectors, max_fragment_input_vectors, min_program_texel_offset,
        max_program_texel_offset, max_clip_distances, max_compute_work_group_count_x,
        max_compute_work_group_count_y, max_compute_work_group_count_z, max_compute_work_group_size_x,
        max_compute_work_group_size_y, max_compute_work_group_size_z, max_compute_uniform_components,
        max_compute_texture_image_units, max_compute_image_uniforms, max_compute_atomic_counters,
        max_compute_atomic_counter_buffers, max_varying_components, max_vertex_output_components,
        max_geometry_input_components, max_geometry_output_components, max_fragment_input_components,
        max_image_units, max_combined_image_units_and_fragment_outputs, max_combined_shader_output_resources,
        max_image_samples, max_vertex_image_uniforms, max_tess_control_image_uniforms,
        max_tess_evaluation_image_uniforms, max_geometry_image_uniforms, max_fragment_image_uniforms,
        max_combined_image_uniforms, max_geometry_texture_image_units, max_geometry_output_vertices,
        max_geometry_total_output_components, max_geometry_uniform_components,
        max_geometry_varying_components, max_tess_control_input_components,
        max_tess_control_output_components, max_tess_control_texture_image_units,
        max_tess_control_uniform_components, max_tess_control_total_output_components,
        max_tess_evaluation_input_components, max_tess_evaluation_output_components,
        max_tess_evaluation_texture_image_units, max_tess_evaluation_uniform_components,
        max_tess_patch_components, max_patch_vertices, max_tess_gen_level, max_viewports,
        max_vertex_atomic_counters, max_tess_control_atomic_counters, max_tess_evaluation_atomic_counters,
        max_geometry_atomic_counters, max_fragment_atomic_counters, max_combined_atomic_counters,
        max_atomic_counter_bindings, max_vertex_atomic_counter_buffers,
        max_tess_control_atomic_counter_buffers, max_tess_evaluation_atomic_counter_buffers,
        max_geometry_atomic_counter_buffers, max_fragment_atomic_counter_buffers,
        max_combined_atomic_counter_buffers, max_atomic_counter_buffer_size, max_transform_feedback_buffers,
        max_transform_feedback_interleaved_components, max_cull_distances,
        max_combined_clip_and_cull_distances, max_samples, max_mesh_output_vertices_nv,
        max_mesh_output_primitives_nv, max_mesh_work_group_size_x_nv, max_mesh_work_group_size_y_nv,
        max_mesh_work_group_size_z_nv, max_task_work_group_size_x_nv, max_task_work_group_size_y_nv,
        max_task_work_group_size_z_nv, max_mesh_view_count_nv, max_dual_source_draw_buffers_ext;
    glslang_limits_t limits;
} glslang_resource_t;

typedef struct {
    int language, stage, client, client_version, target_language, target_language_version;
    const char* code;
    int default_version, default_profile, force_default_version_and_profile, forward_compatible, messages;
    const glslang_resource_t* resource;
} glslang_input_t;
