"""Reading order of the lines on a PDF page, derived from their positions. Pure.

The page is split recursively along empty strips. The part above or to the left of a strip is read first. If
several cuts are possible, the one that disrupts the content order least is chosen, so that cards in rows stay
in rows and columns stay columns. Parts without an empty strip keep the content order.
"""

from collections.abc import Iterator, Sequence
from itertools import accumulate, pairwise
from typing import NamedTuple

from shared.ingestion.parsers.pdf_geometry import Region
from shared.ingestion.parsers.pdf_lines import Line, line_region

# Maximum gap between the lines of a block, relative to the font size. Gaps between paragraphs are larger.
_SPACING = 0.9
# Tolerance between the baselines of a row, relative to the font size.
_SAME_ROW = 0.5
# Minimum width of an empty strip, relative to the font size. Spaces within text are narrower.
_MIN_STRIP = 0.6
# Letter boxes extend this far into the space above and below the letters, relative to the font size.
_TIGHT = 0.2
# Maximum number of blocks to sort. A page with more contains a drawing.
_MAX_BLOCKS = 400
# Unicode blocks of Hebrew, Arabic and Syriac.
_RIGHT_TO_LEFT = range(0x590, 0x900)
_SAMPLE_CHARS = 2000


class _Block(NamedTuple):
    """Lines that are adjacent on the page and consecutive in its content. `place` is the position of the
    block in content order.
    """

    place: int
    lines: tuple[Line, ...]
    box: Region


def in_reading_order(lines: Sequence[Line], tables: Sequence[Region] = ()) -> list[Line]:
    """Return the lines of a page in reading order. Right-to-left text and drawings stay in content order.

    Args:
        lines: lines in content order.
        tables: areas of tables, whose lines stay together.
    """
    blocks = list(_blocks(lines, tables))
    if len(blocks) < 2 or len(blocks) > _MAX_BLOCKS or _is_right_to_left(lines):
        return list(lines)
    size = sorted(line.size for line in lines)[len(lines) // 2]
    return [line for block in _ordered(blocks, size) for line in block.lines]


def _is_right_to_left(lines: Sequence[Line]) -> bool:
    letters = [letter for letter in "".join(line.text for line in lines)[:_SAMPLE_CHARS] if letter.isalpha()]
    return 2 * sum(ord(letter) in _RIGHT_TO_LEFT for letter in letters) > len(letters)


def _blocks(lines: Sequence[Line], tables: Sequence[Region]) -> Iterator[_Block]:
    """Group lines into blocks. All lines of a table form one block."""
    open_tables: dict[int, list[Line]] = {}
    blocks: list[list[Line]] = []
    for line in lines:
        box = line_region(line)
        table = next((place for place, region in enumerate(tables) if _is_within(box, region)), None)
        if table is not None and table in open_tables:
            open_tables[table].append(line)
            continue
        is_next = table is None and blocks and blocks[-1] not in open_tables.values()
        if is_next and _continues_block(blocks[-1], line):
            blocks[-1].append(line)
            continue
        blocks.append([line])
        if table is not None:
            open_tables[table] = blocks[-1]
    for place, block in enumerate(blocks):
        yield _Block(place, tuple(block), _box(block))


def _is_within(box: Region, table: Region) -> bool:
    return table.holds((box.left + box.right) / 2, (box.bottom + box.top) / 2)


def _continues_block(block: Sequence[Line], line: Line) -> bool:
    """Return whether a line is directly below the block or continues the last row of the block."""
    before = block[-1]
    if line.column != before.column:
        return False
    if abs(before.bottom - line.bottom) <= _SAME_ROW * line.size:
        return line.left >= before.left
    overlaps = any(
        line.left < other.right and line.right > other.left
        for other in block
        if abs(before.bottom - other.bottom) <= _SAME_ROW * line.size
    )
    return line.top < before.top and before.bottom - line.top <= _SPACING * line.size and overlaps


def _box(lines: Sequence[Line]) -> Region:
    box = line_region(lines[0])
    for line in lines[1:]:
        box = box.join_with(line_region(line))
    return box


def _ordered(blocks: list[_Block], size: float) -> list[_Block]:
    """Sort blocks from content order into reading order by repeatedly cutting the page at empty strips."""
    parts = [blocks]
    result: list[_Block] = []
    while parts:
        part = parts.pop()
        cut = _best_cut(part, size)
        if cut is None:
            result += part
        else:
            parts += [
                [block for block in part if block.place not in cut],
                [block for block in part if block.place in cut],
            ]
    return result


def _best_cut(blocks: Sequence[_Block], size: float) -> set[int] | None:
    """Choose the empty strip at which to cut the page. Return the `place` of each block to read before the
    strip. Return None if there is no strip.
    """
    down = sorted(blocks, key=lambda block: -block.box.top)
    across = sorted(blocks, key=lambda block: block.box.left)
    tight = _TIGHT * size
    rows = [(-block.box.top + tight, -block.box.bottom - tight) for block in down]
    columns = [(block.box.left, block.box.right) for block in across]
    cuts = [
        *((*cut, down) for cut in _cuts(down, rows, 0.0)),
        *((*cut, across) for cut in _cuts(across, columns, _MIN_STRIP * size)),
    ]
    if not cuts:
        return None
    _, _, count, order = max(cuts, key=lambda cut: cut[:2])
    return {block.place for block in order[:count]}


def _cuts(
    blocks: Sequence[_Block], spans: Sequence[tuple[float, float]], least: float
) -> Iterator[tuple[int, float, int]]:
    """Yield the empty strips between blocks along one axis.

    Args:
        blocks, spans: blocks and their extents, sorted along the axis.
        least: minimum width of a strip.

    Yields:
        Negated number of times that the content order crosses the strip, its width, and the number of blocks
        before it.
    """
    ranks = {block.place: rank for rank, block in enumerate(blocks)}
    changes = [0] * (len(blocks) + 1)
    for one, other in pairwise(sorted(ranks)):
        first, last = sorted((ranks[one], ranks[other]))
        changes[first + 1] += 1
        changes[last + 1] -= 1
    jumps = list(accumulate(changes))
    reached = spans[0][1]
    for count in range(1, len(blocks)):
        if spans[count][0] - reached > least:
            yield -jumps[count], spans[count][0] - reached, count
        reached = max(reached, spans[count][1])
