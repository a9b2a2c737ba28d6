"""Fields of the form in the real JupyterLab: sizes of a ready model, the loss, what is moved off the chip."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from tests.browser.apps import COMPILE_MS, START, RunApp, button, choose_ready, enter
from tests.browser.driver import EVERY_SCREEN, Screens

pytestmark = pytest.mark.browser


@EVERY_SCREEN
def test_a_ready_model_in_another_size(screens: Screens, run_app: RunApp) -> None:
    lab = run_app(START, screen=screens[0])
    page = lab.page
    choose_ready(page, "cnn")
    page.get_by_text("Sizes", exact=True).click()
    field = page.get_by_label("image size", exact=True)
    field.wait_for(timeout=COMPILE_MS)  # Keras is loaded for them
    for typed, wanted in (
        ("5000", "5,000"),
        ("9000", "9,000"),
    ):  # the second is the bound again, which the field does not hold
        field = page.get_by_label("image size", exact=False).first
        field.fill(typed)
        field.press("Tab")
        field = page.get_by_label(f"image size: {wanted} is too large, 4,096 taken", exact=True)
        expect(field).to_have_value("4096")
    field.fill("16")
    field.press("Tab")
    expect(page.get_by_label("image size", exact=True)).to_have_value("16")
    hidden = page.get_by_label("hidden", exact=True)
    hidden.focus()
    hidden.fill("8")
    hidden.press("Tab")
    page.get_by_label("loss", exact=True).select_option("mean_squared_error")
    code = page.locator(".wb-code pre")
    expect(code).to_contain_text("image_size=16")
    expect(code).to_contain_text("mean_squared_error")
    for screen in lab.on(screens):
        lab.screenshot(f"app-fields-{screen}")
    page.get_by_label("loss", exact=True).select_option("own, or by output")
    button(page, "Compile").click()
    page.get_by_role("heading", name="Fits", exact=True).wait_for(timeout=COMPILE_MS)
    page.get_by_text("Done: cnn fits").wait_for()
    page.get_by_label("mode", exact=True).select_option("inference")
    for name in ("loss", "optimizer"):
        expect(page.get_by_label(name, exact=True)).to_be_disabled()
    page.get_by_label("mode", exact=True).select_option("training")
    page.get_by_label("offload", exact=True).select_option(["activations", "optimizer_state"])
    expect(code).to_contain_text("offload=")


# Of each list of the form: its label, whether what is chosen is wider than the room left of the arrow, and its arrow.
LISTS = """form => [...form.querySelectorAll('.widget-dropdown')].filter(each => each.clientWidth).map(each => {
    const list = each.querySelector('select'), style = getComputedStyle(list);
    const pen = document.createElement('canvas').getContext('2d');
    pen.font = style.font;
    const room = list.clientWidth - parseFloat(style.paddingLeft) - parseFloat(style.paddingRight);
    return {
        label: each.querySelector('label').textContent, image: style.backgroundImage, text: style.color,
        cut: pen.measureText(list.selectedOptions[0].text).width > room,
    };
})"""


@EVERY_SCREEN
def test_what_the_lists_of_the_form_begin_with_is_read_whole_and_their_arrows_are_seen(
    screens: Screens, run_app: RunApp
) -> None:
    lab = run_app(START, screen=screens[0])
    choose_ready(lab.page, "mlp")
    for screen in lab.on(screens):
        lists = lab.page.locator(".wb-app-form").evaluate(LISTS)
        assert {"loss", "stages", "optimizer"} <= {each["label"] for each in lists}
        assert [each["label"] for each in lists if each["cut"]] == [], screen
        assert [each["label"] for each in lists if each["text"] not in each["image"]] == [], screen


def test_what_is_chosen_can_be_read(run_app: RunApp) -> None:
    page = run_app(START).page
    loss = page.get_by_label("loss", exact=True)
    loss.select_option("sparse_categorical_crossentropy")
    # 31 letters of 13 pixels, about 7 pixels wide, beside an arrow of 30.
    written = """e => { const pen = document.createElement('canvas').getContext('2d'), style = getComputedStyle(e);
        pen.font = style.font;
        return pen.measureText(e.selectedOptions[0].text).width + parseFloat(style.paddingLeft) + 20 }"""
    assert loss.evaluate("e => e.clientWidth") >= loss.evaluate(written)
    page.get_by_label("partialsType (convolutions)", exact=True).select_option("half")
    changed = page.locator(".wb-app-changed")
    expect(changed).to_have_count(1)
    mark = changed.evaluate("e => parseFloat(getComputedStyle(e).borderLeftWidth)")
    assert mark >= 2  # inside its box, where nothing cuts it
    page.get_by_label("mode", exact=True).focus()
    for name in ("precision", "loss", "optimizer"):  # in the order in which they stand
        page.keyboard.press("Tab")
        expect(page.get_by_label(name, exact=True)).to_be_focused()


def test_results_stand_clear_of_the_form(run_app: RunApp) -> None:
    page = run_app(START).page
    for batch_size in (2, 3):
        enter(page, "batch size", batch_size)
        button(page, "Compile").click()
        page.get_by_text("Done: mlp fits").wait_for(timeout=COMPILE_MS)
        page.get_by_text(f"batch size {batch_size} (", exact=False).nth(1).wait_for()
    expect(page.locator(".wb-app-chip")).to_have_count(2)
    form, chips = page.locator(".wb-app-form").bounding_box(), page.locator(".wb-app-chip").first.bounding_box()
    assert form is not None
    assert chips is not None
    assert chips["y"] >= form["y"] + form["height"] + 8
