"""Figures that are read from a compiled program."""

import jax
import jax.numpy as jnp
import pytest

from launch import compiled

_TEXT = """HloModule program

%body.1 (x: f32[8]) -> f32[8] {
  %add.2 = f32[8] add(x, x), backend_config={"estimated_cycles":"10"}
  ROOT %m.3 = f32[8] multiply(x, x), metadata={op_name="jit(f)/mul"}, \
backend_config={"estimated_cycles":"30"}
}

%other.4 (x: f32[8]) -> f32[8] {
  ROOT %n.5 = f32[8] negate(x), backend_config={"estimated_cycles":"5"}
}

ENTRY %main.6 (x: f32[8]) -> f32[8] {
  %r.7 = f32[8] all-reduce(x), to_apply=%sum
  %g.8 = (f32[2,8], f32[16]) all-gather-start(x), dimensions={0}
  %s.9 = f32[4] reduce-scatter(x), dimensions={0}
  %w.10 = f32[8] while(x), condition=%c, body=%body.1, \
backend_config={"known_trip_count":{"n":"4"}}
  %d.11 = f32[8] conditional(x), branch_computations={%other.4, %other.4}
  ROOT %e.12 = f32[8] exponential(x), backend_config={"estimated_cycles":"7"}
}
"""


def test_cycles_count_loops_as_often_as_they_run():
  assert compiled.cycles(_TEXT) == {
    "add.2": 40,
    "jit(f)/mul": 120,
    "n.5": 10,
    "e.12": 7,
  }


def test_bytes_of_collectives():
  assert compiled.moved(_TEXT, 2) == {
    "all-reduce": 32,
    "all-gather": 128,
    "reduce-scatter": 32,
  }


def test_figures_of_a_program():
  x = jax.ShapeDtypeStruct((64, 64), jnp.float32)
  program = jax.jit(lambda x: x @ x).lower(x).compile()
  figures = compiled.figures(program, 1)
  assert figures.memory >= 2 * 64 * 64 * 4
  assert figures.flops == pytest.approx(2 * 64**3, rel=0.1)
  assert figures.moved == {}
  assert figures.cycles is None and figures.costliest == ()


def test_a_loop_runs_as_often_as_its_condition_says():
  text = """
%body.1 (x: f32[8]) -> f32[8] {
  ROOT %m.3 = f32[8] multiply(x, x), backend_config={"estimated_cycles":"30"}
}

%below.2 (x: (s32[], f32[8])) -> pred[] {
  %c.4 = s32[]{:T(128)} constant(5)
  %i.5 = s32[]{:T(128)} get-tuple-element(x), index=0
  ROOT %lt.6 = pred[]{:T(512)} compare(%i.5, %c.4), direction=LT
}

%until.3 (x: (s32[], f32[8])) -> pred[] {
  %c.7 = s32[] constant(5)
  ROOT %and.8 = pred[] and(%a, %b)
}

ENTRY %main.6 (x: f32[8]) -> f32[8] {
  %w.10 = f32[8] while(x), condition=%below.2, body=%body.1
  ROOT %w.11 = f32[8] while(x), condition=%until.3, body=%body.1
}
"""
  assert compiled.cycles(text) == {"m.3": 180}
