"""The twenty-five stories of our users, each with the tests that hold it, as the kind of test it is."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Story:
    """`who` wants what (`text`), and `tests` of one `kind`, by their node ids; `hand`: mouse, keyboard."""

    number: int
    who: str
    text: str
    kind: str
    tests: tuple[str, ...]
    hand: tuple[str, ...] = ()


BOTH = ("mouse", "keyboard")
BROWSER, UNIT, PROPERTY, TABLE, COMMAND = "browser", "unit", "property", "table", "command"
_FIRST_LOOK = "tests/browser/test_first_look.py"
STORIES = (
    Story(
        number=1,
        who="learner",
        text="the first notebook runs whole; its views are drawn",
        kind=BROWSER,
        tests=(f"{_FIRST_LOOK}::test_run_all_draws_every_view_without_an_error",),
        hand=BOTH,
    ),
    Story(
        number=2,
        who="learner",
        text="1,000 floats over ten tiles: tile 3 reads 400 B; mapped to one tile, map and totals follow",
        kind=UNIT,
        tests=("tests/test_tiles.py::test_a_thousand_floats_over_ten_tiles_put_400_bytes_on_tile_3",),
    ),
    Story(
        number=3,
        who="learner",
        text="one tile that works ten times harder decides the step, by the formula",
        kind=UNIT,
        tests=("tests/test_tiles.py::test_one_tile_that_works_ten_times_harder_decides_the_step",),
    ),
    Story(
        number=4,
        who="learner",
        text="an early tensor used late raises liveness by its bytes and heads the list at the peak",
        kind=UNIT,
        tests=(
            "tests/test_tiles.py::test_using_an_early_tensor_late_costs_its_bytes_in_between",
            "tests/profiler/reports/test_reports.py::test_an_early_tensor_used_late_is_first_at_the_peak",
        ),
    ),
    Story(
        number=5,
        who="learner",
        text="out of memory is told with tile, step and bytes; the first fix makes the same cell pass",
        kind=UNIT,
        tests=("tests/notebooks/test_notebooks.py::test_the_first_look_learns_and_mends",),
    ),
    Story(
        number=6,
        who="porter",
        text="does it fit: the same verdict in text, HTML and exit code",
        kind=COMMAND,
        tests=("tests/cli/test_commands.py::test_profile_exit_code_is_the_verdict",),
    ),
    Story(
        number=7,
        who="porter",
        text="what a peak is made of: categories sum to the total within 0 B",
        kind=PROPERTY,
        tests=(
            "tests/engine/memory/test_liveness.py::test_categories_sum_to_the_total_at_every_tile_and_step",
            "tests/models/test_full_size.py::test_categories_of_every_tile_sum",
        ),
    ),
    Story(
        number=8,
        who="porter",
        text="first fixes of seeded cases fit and cost little more than the cheapest that fits",
        kind=TABLE,
        tests=(
            "tests/decide/test_table.py::test_first_fixes_fit_and_cost_little_more_than_the_cheapest_of_the_lattice",
        ),
    ),
    Story(
        number=9,
        who="porter",
        text="availableMemoryProportion over twelve values, the fastest that fits marked",
        kind=UNIT,
        tests=("tests/sweeps/test_available_memory.py::test_twelve_values_and_the_fastest_that_fits",),
    ),
    Story(
        number=10,
        who="porter",
        text="stages that are found beat even ones, each verified; a layer moved by hand moves both bars",
        kind=TABLE,
        tests=(
            "tests/splits/test_table.py::test_the_slowest_stage_is_no_slower_than_of_even_stages",
            "tests/splits/test_by_hand.py::test_layers_move_with_what_they_cost",
        ),
    ),
    Story(
        number=11,
        who="porter",
        text="what was tried as points of bytes against cycles with the front and the present one",
        kind=UNIT,
        tests=(
            "tests/widgets/app/test_app.py::test_points_of_a_diagnosis_lie_where_their_numbers_are",
            "tests/profiler/advice/test_diagnose.py::test_the_front_is_what_nothing_beats",
        ),
    ),
    Story(
        number=12,
        who="porter",
        text="everything names its layer; a click in one view selects it in all",
        kind=BROWSER,
        tests=("tests/browser/test_views.py::test_views_are_linked_and_follow_the_keyboard",),
        hand=("keyboard",),
    ),
    Story(
        number=13,
        who="performance engineer",
        text="cycles by cause sum to the total",
        kind=PROPERTY,
        tests=("tests/profiler/reports/test_reports.py::test_causes_sum_to_the_total",),
    ),
    Story(
        number=14,
        who="performance engineer",
        text="two profiles side by side: a swap flips every sign",
        kind=BROWSER,
        tests=(
            "tests/browser/test_comparing.py::test_every_change_is_later_minus_earlier_in_both_orders",
            "tests/browser/test_app.py::test_two_compiles_are_chips_and_stand_side_by_side",
        ),
        hand=BOTH,
    ),
    Story(
        number=15,
        who="performance engineer",
        text="a micro-batch lights up on every IPU; the bubble is the schedule's formula",
        kind=BROWSER,
        tests=(
            "tests/browser/test_pipeline.py::test_a_click_lights_up_a_micro_batch_on_every_ipu",
            "tests/browser/test_pipeline.py::test_the_keyboard_reaches_micro_batches_and_markers",
        ),
        hand=BOTH,
    ),
    Story(
        number=16,
        who="performance engineer",
        text="many IPUs and micro-batches in a few megabytes",
        kind=BROWSER,
        tests=("tests/browser/test_pipeline.py::test_64_ipus_and_1024_micro_batches",),
        hand=("keyboard",),
    ),
    Story(
        number=17,
        who="performance engineer",
        text="a Chrome trace with our cycles; CSV and JSON of every table",
        kind=UNIT,
        tests=("tests/profiler/export/test_exports.py::test_chrome_trace_has_our_cycles",),
    ),
    Story(
        number=18,
        who="lecturer",
        text="one HTML file, at most 3 MB, without a network, light and dark, by keyboard",
        kind=BROWSER,
        tests=("tests/browser/test_views.py::test_the_page_works_from_a_file",),
        hand=BOTH,
    ),
    Story(
        number=19,
        who="lecturer",
        text="an exercise is graded",
        kind=UNIT,
        tests=(
            "tests/profiler/advice/test_challenge.py::test_fit_resnet_is_solved_by_a_fitting_step_of_sixteen_images",
        ),
    ),
    Story(
        number=20,
        who="lecturer",
        text="axe finds nothing above minor in what is ours",
        kind=BROWSER,
        tests=(
            "tests/browser/test_axe.py::test_the_file_of_a_profile",
            "tests/browser/test_axe.py::test_the_app",
            "tests/browser/test_axe.py::test_views_of_a_notebook",
            "tests/browser/test_axe.py::test_tab_reaches_every_control_of_the_app_and_leaves_it",
        ),
        hand=BOTH,
    ),
    Story(
        number=21,
        who="more",
        text="X-ray: at every place the rectangles sum to the live bytes",
        kind=PROPERTY,
        tests=("tests/widgets/views/test_xray.py::test_at_every_place_the_rectangles_sum_to_the_live_bytes",),
    ),
    Story(
        number=22,
        who="more",
        text="cycles of lines and what has no line sum to the total",
        kind=PROPERTY,
        tests=("tests/profiler/reports/test_reports.py::test_lines_and_the_rest_sum_to_the_total",),
    ),
    Story(
        number=23,
        who="more",
        text="without a screen: a verdict and an HTML",
        kind=COMMAND,
        tests=("tests/test_lab.py::test_headless_writes_the_page_and_gives_the_verdict",),
    ),
    Story(
        number=24,
        who="more",
        text="thirty kernels with a lesson of tiles fit in 5 GB",
        kind=UNIT,
        tests=("tests/notebooks/test_kernels.py::test_thirty_kernels_of_the_tiles_lesson_fit_in_five_gigabytes",),
    ),
    Story(
        number=25,
        who="more",
        text="a fresh clone, opened and not run, shows a picture for every view",
        kind=BROWSER,
        tests=(f"{_FIRST_LOOK}::test_stored_and_untrusted_every_view_is_a_picture",),
        hand=BOTH,
    ),
)
