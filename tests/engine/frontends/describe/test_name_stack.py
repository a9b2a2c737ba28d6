from __future__ import annotations

from workbench.engine.frontends.describe.name_stack import (
    LOSS_SCOPE,
    UPDATE_SCOPE,
    LayerNames,
    Place,
    Stack,
    call_scope,
    once,
    place_of,
)

ANY = LayerNames({})
KNOWN = LayerNames({"encoder": "Encoder", "encoder/query": "Dense", "out": "Dense"})


def scopes(*names: str) -> Stack:
    return tuple(("scope", name) for name in names)


def transforms(*names: str) -> Stack:
    return tuple(("transform", name) for name in names)


def test_scopes_nest_into_a_path() -> None:
    assert place_of((), scopes("encoder", "query"), KNOWN) == Place(layer="encoder/query")


def test_scopes_that_are_no_layers_are_left_out_of_a_keras_path() -> None:
    assert place_of((), scopes("helper", "encoder", "inner", "query"), KNOWN).layer == "encoder/query"


def test_every_scope_is_a_layer_of_a_plain_function() -> None:
    assert place_of((), scopes("block", "inner"), ANY).layer == "block/inner"


def test_subscripts_of_einsum_are_dropped() -> None:
    assert place_of((), scopes("block", "bd,df->bf"), ANY).layer == "block"


def test_enclosing_equations_come_first() -> None:
    assert place_of(scopes("encoder"), scopes("query"), KNOWN).layer == "encoder/query"


def test_a_transpose_anywhere_means_backward() -> None:
    assert place_of(transforms("transpose", "jvp"), scopes("out"), KNOWN) == Place(layer="out", direction="backward")
    assert place_of((), (*transforms("jvp"), *scopes("out")), KNOWN).direction is None


def test_a_rematerialised_body_is_recompute_even_inside_the_backward_pass() -> None:
    place = place_of(transforms("transpose", "jvp"), scopes("rematted_computation", "out"), KNOWN)
    assert place == Place(layer="out", direction="recompute")


def test_a_stack_repeated_behind_a_transform_is_read_once() -> None:
    stack = (*transforms("transpose", "jvp"), *scopes("a"), *transforms("jvp"), *scopes("a", "b"))
    assert place_of((), stack, ANY).layer == "a/b"


def test_a_transform_inside_a_layer_keeps_the_layer() -> None:
    assert place_of((*scopes("encoder", "query"), *transforms("vmap")), (), KNOWN).layer == "encoder/query"


def test_an_equation_that_carries_its_stack_twice_is_read_once() -> None:
    assert once(scopes("inbody", "inbody")) == scopes("inbody")
    assert once(scopes("a", "b")) == scopes("a", "b")


def test_the_loss_and_the_update_have_scopes_of_their_own() -> None:
    assert place_of((), scopes(LOSS_SCOPE, "mean"), ANY).layer == "loss"
    assert place_of((), scopes(UPDATE_SCOPE), KNOWN).direction == "update"


def test_a_layer_of_the_user_called_loss_is_not_the_loss() -> None:
    names = LayerNames({"compile_loss": "Dense", "compile_loss/part": "Dense"})
    assert place_of((), scopes("compile_loss", "part"), names).layer == "compile_loss/part"
    assert place_of((), scopes("compile_loss", "mean"), KNOWN).layer == "loss"


def test_the_call_number_is_that_of_the_innermost_layer() -> None:
    stack = scopes("encoder", call_scope(2), "query", call_scope(3))
    assert place_of((), stack, KNOWN) == Place(layer="encoder/query", call=3, outer_call=2)
    assert place_of((), scopes("encoder", call_scope(2), "query"), KNOWN).call == 1


def test_a_layer_called_by_one_that_does_not_own_it_keeps_its_class() -> None:
    assert place_of((), scopes("out", "query"), KNOWN).layer == "out/query"
    assert KNOWN.class_of("out/query") == "Dense"
    assert KNOWN.class_of("nowhere") == ""
