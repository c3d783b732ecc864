"""PDF files with filled-in form fields. They are written byte by byte, because no installed library creates
form fields.
"""

from pathlib import Path


class FormMaker:
    """A page with words, fields, check boxes and notes. Positions are in points from the lower left
    corner.
    """

    def __init__(self) -> None:
        self._words: list[str] = []
        self._annotations: list[str] = []

    def words(self, text: str, left: int, bottom: int) -> "FormMaker":
        self._words.append(f"BT /F 12 Tf {left} {bottom} Td ({text}) Tj ET")
        return self

    def field(self, name: str, value: str, left: int, bottom: int, more: str = "") -> "FormMaker":
        return self._add(
            f"/Subtype/Widget/FT/Tx/T({name})/V({value})/DA(/F 12 Tf 0 g){more}", left, bottom, 200
        )

    def tick(self, name: str, left: int, bottom: int, *, ticked: bool) -> "FormMaker":
        state = "Yes" if ticked else "Off"
        drawn = "/AP<</N<</Yes 6 0 R/Off 7 0 R>>>>"
        return self._add(f"/Subtype/Widget/FT/Btn/T({name})/V/{state}/AS/{state}{drawn}", left, bottom, 12)

    def note(self, text: str, left: int, bottom: int) -> "FormMaker":
        return self._add(f"/Subtype/FreeText/Contents({text})/DA(/F 12 Tf 0 g)", left, bottom, 200)

    def write(self, path: Path) -> Path:
        """Write the PDF and return its path. It uses only standard fonts, which every viewer has."""
        numbers = range(8, 8 + len(self._annotations))
        places = " ".join(f"{number} 0 R" for number in numbers)
        fonts = "<</Font<</F 5 0 R>>>>"
        objects = [
            f"<</Type/Catalog/Pages 2 0 R/AcroForm<</Fields[{places}]/DA(/F 12 Tf 0 g)/DR{fonts}>>>>",
            "<</Type/Pages/Kids[3 0 R]/Count 1>>",
            f"<</Type/Page/Parent 2 0 R/MediaBox[0 0 595 842]/Contents 4 0 R/Resources{fonts}"
            f"/Annots[{places}]>>",
            _stream("", "\n".join(self._words)),
            "<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>",
            _stream("/Type/XObject/Subtype/Form/BBox[0 0 12 12]", "0 0 m 12 12 l S"),
            _stream("/Type/XObject/Subtype/Form/BBox[0 0 12 12]", ""),
            *self._annotations,
        ]
        content, offsets = b"%PDF-1.7\n", []
        for number, body in enumerate(objects, start=1):
            offsets.append(len(content))
            content += f"{number} 0 obj\n{body}\nendobj\n".encode("latin-1")
        table = "".join(f"{offset:010d} 00000 n \n" for offset in offsets)
        size = len(objects) + 1
        end = f"xref\n0 {size}\n0000000000 65535 f \n{table}trailer<</Size {size}/Root 1 0 R>>\n"
        path.write_bytes(content + f"{end}startxref\n{len(content)}\n%%EOF".encode())
        return path

    def _add(self, body: str, left: int, bottom: int, width: int) -> "FormMaker":
        box = f"{left} {bottom} {left + width} {bottom + 16}"
        flags = "" if "/F " in body.replace("/F 12", "") else "/F 4"
        self._annotations.append(f"<</Type/Annot/Rect[{box}]/P 3 0 R{flags}{body}>>")
        return self


def _stream(entries: str, content: str) -> str:
    return f"<<{entries}/Length {len(content)}>>stream\n{content}\nendstream"
