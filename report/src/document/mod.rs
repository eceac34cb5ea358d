//! What a text says and how it is built, before any format: blocks of inlines, and tables. Reports, comparisons and pages
//! of the command line are built as one [`Document`]; each format is a writer of it, and none reads what another wrote.
//!
//! The tree holds text as it is. A name from a capture may hold escape sequences, Markdown or HTML: making that harmless is
//! the business of each writer, because only a writer knows what its format acts on.
//!
//! | module | owns |
//! | --- | --- |
//! | `inline` | what stands inside a line: text, names, emphasis, evidence |
//! | `table` | tables with the side on which each column's text stands |
//! | [`notation`] | the marks that texts of the catalogue may hold, and their places for values |

mod inline;
pub mod notation;
mod table;

pub use inline::{Inline, Inlines};
pub use table::{Align, Table};

use super::{markdown, terminal};

/// Joins what can be an inline into one [`Inlines`].
#[macro_export]
macro_rules! inlines {
    ($($part:expr),* $(,)?) => {{
        let mut whole = $crate::document::Inlines::new();
        $(whole.push($part);)*
        whole
    }};
}

/// Cells of a row, each of anything that can be an inline.
#[macro_export]
macro_rules! cells {
    ($($cell:expr),* $(,)?) => { [$($crate::document::Inlines::from($cell)),*] };
}

/// A text of blocks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Document {
    /// The blocks in their order.
    pub blocks: Vec<Block>,
}

/// A part of a document that stands by itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Block {
    /// A heading; 1 is the title of the document.
    Heading {
        /// Depth from 1.
        level: u8,
        /// What it says.
        text: Inlines,
        /// What the blocks under it are about, where a reader can go there.
        about: Option<About>,
    },
    /// A paragraph.
    Paragraph(Inlines),
    /// A paragraph that no reader should miss.
    Notice(Inlines),
    /// A list without numbers.
    List(Vec<Inlines>),
    /// A table.
    Table(Table),
    /// Lines of a program or a file, kept as they are.
    Listing(String),
}

/// What the blocks under a heading are about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum About {
    /// A finding of the capture, by its position.
    Finding(usize),
}

impl Document {
    /// A document without blocks.
    pub fn new() -> Self {
        Self::default()
    }

    /// Whether nothing stands in it.
    pub fn is_empty(&self) -> bool {
        self.blocks.is_empty()
    }

    /// As Markdown.
    pub fn markdown(&self) -> String {
        markdown::render(self)
    }

    /// As Markdown in colour, for a terminal.
    pub fn terminal(&self) -> String {
        terminal::render(self)
    }

    /// Adds a heading.
    pub fn heading(&mut self, level: u8, text: impl Into<Inlines>) {
        self.blocks.push(Block::Heading { level, text: text.into(), about: None });
    }

    /// Adds a heading over what is said of one thing.
    pub fn heading_about(&mut self, level: u8, text: impl Into<Inlines>, about: About) {
        self.blocks.push(Block::Heading { level, text: text.into(), about: Some(about) });
    }

    /// Adds a paragraph.
    pub fn paragraph(&mut self, text: impl Into<Inlines>) {
        self.blocks.push(Block::Paragraph(text.into()));
    }

    /// Adds a paragraph that no reader should miss.
    pub fn notice(&mut self, text: impl Into<Inlines>) {
        self.blocks.push(Block::Notice(text.into()));
    }

    /// Adds a list; nothing where it has no items.
    pub fn list<T: Into<Inlines>>(&mut self, items: impl IntoIterator<Item = T>) {
        let items: Vec<Inlines> = items.into_iter().map(Into::into).collect();
        if !items.is_empty() {
            self.blocks.push(Block::List(items));
        }
    }

    /// Adds a table.
    pub fn table(&mut self, table: Table) {
        self.blocks.push(Block::Table(table));
    }

    /// Adds lines of a program or a file.
    pub fn listing(&mut self, text: impl Into<String>) {
        self.blocks.push(Block::Listing(text.into()));
    }

    /// Adds the blocks of another document.
    pub fn append(&mut self, other: Self) {
        self.blocks.extend(other.blocks);
    }

    /// Puts words before the first block, where that is a paragraph, else in a paragraph of their own.
    pub fn begin_with(&mut self, words: impl Into<Inlines>) {
        match self.blocks.first_mut() {
            Some(Block::Paragraph(text)) => *text = words.into() + std::mem::take(text),
            _ => self.blocks.insert(0, Block::Paragraph(words.into())),
        }
    }
}

impl FromIterator<Self> for Document {
    fn from_iter<T: IntoIterator<Item = Self>>(documents: T) -> Self {
        Self { blocks: documents.into_iter().flat_map(|document| document.blocks).collect() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_without_items_is_no_block_and_words_join_the_first_paragraph() {
        let mut document = Document::new();
        document.list(Vec::<Inlines>::new());
        assert!(document.is_empty());
        document.paragraph("b");
        document.begin_with("a: ");
        assert_eq!(document.blocks, [Block::Paragraph("a: b".into())]);
        let mut table = Document { blocks: vec![Block::List(vec!["x".into()])] };
        table.begin_with("a");
        assert_eq!(table.blocks.len(), 2);
    }
}
