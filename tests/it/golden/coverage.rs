//! What the accepted pages show between them.
