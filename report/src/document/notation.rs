//! Texts of the catalogue as inlines. They are ours, in two languages, and may mark a `name`, something **strong** or
//! *set apart*, and hold `{places}` for values. The marks are read here, once, when the tree is made. A value never passes
//! through here: whatever a capture holds stays one text.

use super::Inlines;

/// Reads a text whose places are filled by `place`. A place that nothing fills, and a mark without its partner, stay text.
pub fn read(text: &str, place: &dyn Fn(&str) -> Option<Inlines>) -> Inlines {
    let mut out = Inlines::new();
    let mut words = String::new();
    let mut rest = text;
    while let Some(at) = rest.find(['`', '*', '{']) {
        let (before, tail) = rest.split_at(at);
        words.push_str(before);
        match part(tail, place) {
            Some((part, after)) => {
                out.push(std::mem::take(&mut words));
                out.push(part);
                rest = after;
            }
            None => {
                // A run of marks without a partner is no mark further in either.
                let run = tail.len() - tail.trim_start_matches(['*', '`']).len();
                let (run, after) = tail.split_at(run.max(1));
                words.push_str(run);
                rest = after;
            }
        }
    }
    words.push_str(rest);
    out.push(words);
    out
}

/// Reads a text without places.
pub fn plain(text: &str) -> Inlines {
    read(text, &|_| None)
}

/// The marked part or place at the start of a text, and what follows it.
fn part<'a>(text: &'a str, place: &dyn Fn(&str) -> Option<Inlines>) -> Option<(Inlines, &'a str)> {
    if let Some(inside) = text.strip_prefix('{') {
        let (name, after) = inside.split_once('}')?;
        return Some((place(name)?, after));
    }
    if let Some(inside) = text.strip_prefix('`') {
        let (inside, after) = inside.split_once('`').filter(|(inside, _)| !inside.is_empty())?;
        return Some((Inlines::code(read_places(inside, place)), after));
    }
    for (mark, marked) in [("**", Inlines::strong as fn(Inlines) -> Inlines), ("*", Inlines::emphasis)] {
        if let Some(inside) = text.strip_prefix(mark) {
            let (inside, after) = inside.split_once(mark)?;
            let is_marked = !inside.is_empty() && !inside.starts_with([' ', '*']) && !inside.ends_with(' ');
            return is_marked.then(|| (marked(read(inside, place)), after));
        }
    }
    None
}

/// The text of a name, with the words of its places.
fn read_places(text: &str, place: &dyn Fn(&str) -> Option<Inlines>) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, tail)) = rest.split_once('{') {
        out.push_str(before);
        match tail.split_once('}').and_then(|(name, after)| Some((place(name)?, after))) {
            Some((value, after)) => {
                out.push_str(&value.words());
                rest = after;
            }
            None => {
                out.push('{');
                rest = tail;
            }
        }
    }
    out + rest
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::inlines;

    #[test]
    fn marks_and_places_are_read_and_values_are_not() {
        let place = |name: &str| match name {
            "n" => Some(Inlines::from("3 * 4 `x` **y** {n}")),
            "raw" => Some(Inlines::code("a`b")),
            _ => None,
        };
        assert_eq!(
            read("**a {n}** of `f {raw}`: {raw}{other}, *set*", &place),
            inlines![
                Inlines::strong("a 3 * 4 `x` **y** {n}"),
                " of ",
                Inlines::code("f a`b"),
                ": ",
                Inlines::code("a`b"),
                "{other}, ",
                Inlines::emphasis("set"),
            ]
        );
    }

    #[test]
    fn what_has_no_partner_is_text() {
        for text in ["3 * 4", "a ** b", "``", "`a", "*a", "**a*", "{a", "}", "2 * 3 * 4"] {
            assert_eq!(plain(text), text.into(), "{text}");
        }
        assert_eq!(plain(""), Inlines::new());
    }

    proptest::proptest! {
        #[test]
        fn only_marks_are_lost(text in "[a `*{}核]{0,40}") {
            let letters = |text: &str| text.replace(['`', '*'], "");
            proptest::prop_assert_eq!(letters(&plain(&text).words()), letters(&text));
        }
    }
}
