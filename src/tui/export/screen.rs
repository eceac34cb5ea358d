//! A screen as a picture: every cell with its colours, as SVG text, so that it can be read, searched and scaled.

use std::fmt::Write as _;

use ratatui::{
    buffer::{Buffer, Cell},
    style::{Color, Modifier},
};
use report::svg::escape;
use unicode_width::UnicodeWidthStr;

/// Size of a cell, and of the text in it, in pixels.
const CELL: (u32, u32) = (8, 17);
const FONT: u32 = 13;
/// Colours of a terminal that says nothing of its own.
const TEXT: &str = "#d4d4d4";
const GROUND: &str = "#1e1e1e";

/// What neighbouring cells have in common.
#[derive(Clone, PartialEq, Eq)]
struct Look {
    fg: String,
    bg: String,
    bold: bool,
    underlined: bool,
}

impl Look {
    fn of(cell: &Cell) -> Self {
        let (mut fg, mut bg) = (colour(cell.fg, TEXT), colour(cell.bg, GROUND));
        if cell.modifier.contains(Modifier::REVERSED) {
            (fg, bg) = (bg, fg);
        }
        let (bold, underlined) = (cell.modifier.contains(Modifier::BOLD), cell.modifier.contains(Modifier::UNDERLINED));
        Self { fg, bg, bold, underlined }
    }
}

/// The picture of a screen.
pub fn render(screen: &Buffer) -> String {
    let (columns, rows) = (u32::from(screen.area.width), u32::from(screen.area.height));
    let (width, height) = (columns * CELL.0, rows * CELL.1);
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" height=\"{height}\" \
         font-family=\"ui-monospace, 'DejaVu Sans Mono', Menlo, Consolas, monospace\" font-size=\"{FONT}\">\n\
         <rect width=\"{width}\" height=\"{height}\" fill=\"{GROUND}\"/>\n"
    );
    for y in 0..screen.area.height {
        for run in runs(screen, y) {
            draw(&mut out, &run, u32::from(y));
        }
    }
    out.push_str("</svg>\n");
    out
}

/// Cells beside each other that look alike.
struct Run {
    look: Look,
    column: u32,
    columns: u32,
    text: String,
}

fn runs(screen: &Buffer, y: u16) -> Vec<Run> {
    let mut runs: Vec<Run> = Vec::new();
    let mut covered = 0;
    for x in 0..screen.area.width {
        let Some(cell) = screen.cell((x, y)) else { continue };
        let look = Look::of(cell);
        // A wide symbol covers the cell after it, which holds a blank.
        let hidden = covered > 0;
        covered = if hidden { covered - 1 } else { cell.symbol().width().saturating_sub(1) };
        match runs.last_mut().filter(|run| run.look == look || hidden) {
            Some(run) => {
                run.columns += 1;
                if !hidden {
                    run.text.push_str(cell.symbol());
                }
            }
            None => runs.push(Run { look, column: u32::from(x), columns: 1, text: cell.symbol().to_owned() }),
        }
    }
    runs
}

fn draw(out: &mut String, run: &Run, row: u32) {
    let Run { look, column, columns, text } = run;
    let (x, y, width) = (column * CELL.0, row * CELL.1, columns * CELL.0);
    if look.bg != GROUND {
        // Writing to a text cannot fail.
        let _ =
            writeln!(out, "<rect x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{}\" fill=\"{}\"/>", CELL.1, look.bg);
    }
    // Blanks at the ends of a run have no ink, and viewers disagree about their width.
    let blanks = |text: &str| u32::try_from(text.chars().take_while(|c| *c == ' ').count()).unwrap_or(0);
    let (before, after) = (blanks(text), blanks(&text.chars().rev().collect::<String>()));
    let text = text.trim_matches(' ');
    if text.is_empty() {
        return;
    }
    let (x, width) = (x + before * CELL.0, (columns - before - after) * CELL.0);
    let style = [(look.bold, " font-weight=\"bold\""), (look.underlined, " text-decoration=\"underline\"")];
    let style: String = style.iter().filter(|(is, _)| *is).map(|(_, text)| *text).collect();
    let baseline = y + CELL.1 - 4;
    let _ = writeln!(
        out,
        "<text x=\"{x}\" y=\"{baseline}\" fill=\"{}\"{style} textLength=\"{width}\" lengthAdjust=\"spacingAndGlyphs\" xml:space=\"preserve\">{}</text>",
        look.fg,
        escape(text)
    );
}

/// A colour as SVG has it; `own` stands for that of the terminal.
fn colour(colour: Color, own: &str) -> String {
    match colour {
        Color::Rgb(r, g, b) => format!("#{r:02x}{g:02x}{b:02x}"),
        Color::Black => "#000000".to_owned(),
        Color::White => "#ffffff".to_owned(),
        _ => own.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use ratatui::{layout::Rect, style::Style};

    use super::*;

    #[test]
    fn cells_that_look_alike_are_one_text_and_names_stay_text() {
        let mut screen = Buffer::empty(Rect::new(0, 0, 12, 2));
        screen.set_string(0, 0, "<script>", Style::new().fg(Color::Rgb(1, 2, 3)).bold());
        screen.set_string(0, 1, "时间 µs", Style::new().bg(Color::Rgb(9, 9, 9)));
        let picture = render(&screen);
        assert!(picture.contains("fill=\"#010203\" font-weight=\"bold\" textLength=\"64\""), "{picture}");
        assert!(picture.contains("&lt;script&gt;") && !picture.contains("<script>"));
        // Two wide symbols, a blank and two narrow ones.
        assert!(picture.contains("<rect x=\"0\" y=\"17\" width=\"56\""), "{picture}");
        assert_eq!(picture.matches("<text").count(), 2, "{picture}");
    }
}
