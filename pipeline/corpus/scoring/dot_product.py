"""A dot product whose sum is taken in the same order on every processor, in compiled code.

A compiler that may sum in any order adds as many numbers at once as the processor can, so the last digits
differ between processors. Here every processor has 16 sums: product k goes to sum k modulo 16, rounded before
it is added, and sums are added by halves, 8 to 8 and so on, until one is left.
"""

from __future__ import annotations

from typing import Any, Final

from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic

SUMS: Final = 16


def _dot_product(typing_context: Any, left: Any, right: Any, size: Any) -> Any:
    """Dot product of `size` float32 at address `left` with those at `right`, float32; for compiled functions.

    size: a multiple of SUMS, at least SUMS; nothing checks that.
    """
    return types.float32(types.intp, types.intp, types.intp), _generate


dot_product: Any = intrinsic(_dot_product)


def _generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    number, index = ir.FloatType(), ir.IntType(64)
    vector = ir.VectorType(number, SUMS)
    start, (left, right, size) = builder.block, arguments
    loop, end = builder.append_basic_block(), builder.append_basic_block()
    builder.branch(loop)
    builder.position_at_end(loop)
    place, sums = builder.phi(index), builder.phi(vector)
    place.add_incoming(ir.Constant(index, 0), start)
    sums.add_incoming(ir.Constant(vector, [0.0] * SUMS), start)
    sides = []
    for address in (left, right):
        numbers = builder.gep(builder.inttoptr(address, number.as_pointer()), [place])
        sides.append(builder.load(builder.bitcast(numbers, vector.as_pointer()), align=4))
    total = builder.fadd(sums, builder.fmul(*sides))
    behind = builder.add(place, ir.Constant(index, SUMS))
    place.add_incoming(behind, loop)
    sums.add_incoming(total, loop)
    builder.cbranch(builder.icmp_signed("<", behind, size), loop, end)
    builder.position_at_end(end)
    width = SUMS
    while width > 1:
        nothing = ir.Constant(total.type, ir.Undefined)
        width //= 2
        lower, upper = (
            builder.shuffle_vector(total, nothing, _places(range(first, first + width)))
            for first in (0, width)
        )
        total = builder.fadd(lower, upper)
    return builder.extract_element(total, ir.Constant(ir.IntType(32), 0))


def _places(numbers: range) -> Any:
    return ir.Constant(ir.VectorType(ir.IntType(32), len(numbers)), list(numbers))
