"""Sample document: a leave policy that only the human resources department may read."""

from samples.elements import Bullets, Document, Heading, Paragraph, Table

LEAVE_POLICY = Document(
    title="Leave and Compensation Policy",
    author="Yusuf Adeyemi",
    date="2025-01-15",
    details=(
        "Fernhill Pumpworks, Human Resources",
        "Author: Yusuf Adeyemi, Human Resources",
        "Confidential: for members of the human resources department only. Valid from 15 January 2025.",
    ),
    title_page=False,
    elements=(
        Heading(1, "1 Annual leave"),
        Paragraph(
            "Every employee has 29 days of annual leave. Up to 6 days may be carried over and must be taken "
            "by the end of March. Leave is applied for at least two weeks ahead."
        ),
        Heading(1, "2 Parental leave"),
        Paragraph(
            "Fernhill Pumpworks grants 18 weeks of paid parental leave to each parent. The leave may be "
            "split into three parts and must be taken before the child is two years old."
        ),
        Paragraph(
            "During parental leave the company continues to pay its share of the pension contributions. The "
            "employee returns to the same or an equivalent position."
        ),
        Heading(1, "3 Salary bands"),
        Table(
            "Salary bands, gross per year",
            (
                ("Band", "From", "To"),
                ("B1 Assistant", "34,000 euros", "41,000 euros"),
                ("B2 Specialist", "42,000 euros", "56,000 euros"),
                ("B3 Senior specialist", "55,000 euros", "72,000 euros"),
                ("B4 Head of department", "73,000 euros", "98,000 euros"),
            ),
            (40, 30, 30),
        ),
        Paragraph(
            "The salary bands are reviewed every January. They may not be shared outside the department."
        ),
        Heading(1, "4 Sickness"),
        Bullets(
            (
                "Sickness is reported to the supervisor before 9 o'clock on the first day.",
                "A medical certificate is needed from the fourth day on.",
                "Pay continues for eight weeks.",
            )
        ),
    ),
)
