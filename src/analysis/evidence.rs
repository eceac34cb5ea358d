//! What a capture can and cannot show.
