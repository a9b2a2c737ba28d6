"""What the readers of a profile elsewhere know as reports, each with the views that show it here and its tests."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """`report` and what it shows (`text`): `views` of ours, `exports`, and `tests` that hold it, by their node ids."""

    report: str
    text: str
    views: tuple[str, ...]
    tests: tuple[str, ...]
    exports: tuple[str, ...] = ()


_VIEWS, _BROWSER, _REPORTS = "tests/widgets/views", "tests/browser", "tests/profiler/reports/test_reports.py"
ROWS = (
    Row(
        report="Summary",
        text="the target, the graph's counts, changed options, the engine's version",
        views=("summary",),
        tests=(
            f"{_VIEWS}/test_views.py::test_summary_says_the_verdict_first",
            f"{_BROWSER}/test_views.py::test_a_profile_shows_its_verdict_and_draws_every_tab",
        ),
    ),
    Row(
        report="Insights",
        text="how far from fitting, fullest tiles and their spread, largest code, state and variables, the peak, tips",
        views=("insights",),
        tests=(
            f"{_REPORTS}::test_insights_are_the_tables",
            f"{_BROWSER}/test_operations.py::test_a_tip_shows_what_it_is_about_in_the_other_views",
        ),
    ),
    Row(
        report="Memory",
        text="bytes of tiles by category, region or liveness, variables, the floor plan, gaps and two orders of tiles",
        views=("memory", "tile_map"),
        tests=(
            f"{_VIEWS}/test_memory.py::test_splits_sum_to_the_columns_of_the_tiles",
            f"{_VIEWS}/test_memory.py::test_gaps_and_regions_have_parts_of_their_own",
            f"{_BROWSER}/test_tile_map.py::test_a_step_is_walked_to_and_a_tile_looked_at",
        ),
    ),
    Row(
        report="Liveness",
        text="always-live under the rest over steps, what lives at one, one tile, an IPU or all, a variable's lifetime",
        views=("liveness_view",),
        tests=(
            f"{_VIEWS}/test_views.py::test_liveness_is_the_report_s",
            f"{_VIEWS}/test_liveness_lanes.py::test_the_scope_is_chosen_and_left_again",
            f"{_BROWSER}/test_views.py::test_a_click_on_the_peak_lists_what_is_live_there",
        ),
    ),
    Row(
        report="Program tree",
        text="the control program, coloured as the trace is, searched, and in step with it",
        views=("program_tree",),
        tests=(
            f"{_VIEWS}/test_program_tree.py::test_totals_are_the_profile_s",
            f"{_BROWSER}/test_program_tree.py::test_tree_and_trace_follow_one_another",
        ),
    ),
    Row(
        report="Operations",
        text="a row an operator or layer: code, bytes, cycles, FLOPs, utilisation; sorted, searched, grouped",
        views=("operations",),
        tests=(
            f"{_VIEWS}/test_operations.py::test_rows_are_those_of_the_report",
            f"{_BROWSER}/test_operations.py::test_a_layer_is_walked_into_by_keys_and_its_rows_are_listed",
        ),
    ),
    Row(
        report="Operations graph",
        text="an icicle of layers by bytes, cycles or code; nodes and edges as Model Explorer reads them",
        views=("operations",),
        exports=("model_explorer",),
        tests=(
            f"{_VIEWS}/test_operations.py::test_sums_are_the_profile_s",
            f"{_BROWSER}/test_operations.py::test_a_layer_is_walked_into_by_keys_and_its_rows_are_listed",
        ),
    ),
    Row(
        report="Execution trace",
        text="a lane an IPU, layers above steps, bands of tiles, proportions and balance of what is in view",
        views=("trace",),
        tests=(
            f"{_VIEWS}/test_trace.py::test_a_range_is_the_report_s",
            f"{_BROWSER}/test_trace.py::test_markers_measure_a_range_by_keys_and_by_drag",
            f"{_BROWSER}/test_trace.py::test_the_small_picture_chooses_what_is_in_view",
        ),
    ),
    Row(
        report="Comparison",
        text="two or more profiles in every picture and table; a swap flips every sign",
        views=("comparison",),
        tests=(
            f"{_VIEWS}/test_comparison.py::test_a_swap_negates_the_picture_of_the_tiles",
            f"{_BROWSER}/test_comparing.py::test_every_change_is_later_minus_earlier_in_both_orders",
            f"{_BROWSER}/test_comparing.py::test_traces_on_one_axis_say_the_change_of_every_cause",
        ),
    ),
    Row(
        report="Pipeline",
        text="stage, micro-batch and direction of each block, bubbles by cause, schedules side by side",
        views=("pipeline", "schedules"),
        tests=(
            f"{_VIEWS}/test_pipeline.py::test_blocks_are_the_report_s",
            f"{_BROWSER}/test_pipeline.py::test_a_click_lights_up_a_micro_batch_on_every_ipu",
            f"{_BROWSER}/test_schedules.py::test_a_schedule_is_chosen_and_its_causes_are_its_time",
        ),
    ),
    Row(
        report="Tile X-ray",
        text="addresses over steps of one tile: a rectangle a variable, gaps, what is over its memory",
        views=("xray",),
        tests=(
            f"{_VIEWS}/test_xray.py::test_at_every_place_the_rectangles_sum_to_the_live_bytes",
            f"{_BROWSER}/test_source.py::test_from_a_variable_to_its_line_and_back",
        ),
    ),
    Row(
        report="Source",
        text="the user's cell with cycles and peak bytes a line, linked both ways",
        views=("source",),
        tests=(
            f"{_VIEWS}/test_source.py::test_lines_and_no_line_are_the_whole",
            f"{_BROWSER}/test_source.py::test_from_a_variable_to_its_line_and_back",
        ),
    ),
    Row(
        report="Roofline",
        text="operators as points under the ceilings of compute, exchange and host",
        views=("roofline",),
        tests=(
            f"{_VIEWS}/test_roofline.py::test_points_are_those_of_the_report",
            f"{_BROWSER}/test_views.py::test_a_profile_shows_its_verdict_and_draws_every_tab",
        ),
    ),
    Row(
        report="BSP player",
        text="play, step and scrub: the floor plan of each step, who computes, what moves, memory beside it",
        views=("playback",),
        tests=(
            f"{_VIEWS}/test_playback.py::test_frames_sum_to_the_profile_s_own_tables",
            f"{_BROWSER}/test_player.py::test_play_step_and_scrub",
        ),
    ),
)
