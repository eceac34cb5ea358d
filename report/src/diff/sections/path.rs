//! Path against settings: whether the two went different ways, or only had different settings.

use super::{super::words, DiffPage};
use crate::{
    cells,
    document::{Align, Inlines, Table},
};
use diagnosis::{
    compare::{Difference, path::Trait},
    i18n::Text,
};

/// Characters of a value.
const VALUE: usize = 60;

/// Writes both signatures and what they say together.
pub(super) fn write(page: &mut DiffPage<'_>, difference: &Difference) {
    page.heading(Text::new("Another path, or only other settings?", "路径不同，还是只是设置不同？"));
    let signatures = &difference.signatures;
    let devices = page.capture.heads.each_ref().map(|head| head.device.as_deref());
    let alike = devices[0].is_some() && devices[0] == devices[1];
    page.paragraph(page.get(words::reading(signatures.reading(), alike)));
    let path: Vec<(Inlines, &Trait<_>)> =
        signatures.path.iter().map(|t| (page.get(words::feature(t.key)), t)).collect();
    table(page, Text::new("The path", "路径"), &path);
    let name = |t: &Trait<&str>| Inlines::name(t.key);
    let (same, other): (Vec<_>, Vec<_>) = signatures.settings.iter().partition(|t| t.same == Some(true));
    let other: Vec<(Inlines, &Trait<_>)> = other.into_iter().map(|t| (name(t), t)).collect();
    if !other.is_empty() {
        table(page, Text::new("Settings that are not the same", "不相同的设置"), &other);
    }
    if !same.is_empty() {
        let same = page.join(same.into_iter().map(name));
        page.paragraph(page.labelled(Text::new("Settings that are the same", "相同的设置"), same));
    }
}

fn table<K>(page: &mut DiffPage<'_>, title: Text, traits: &[(Inlines, &Trait<K>)]) {
    let mut table = Table::new([
        (page.get(Text::new("trait", "特征")), Align::Left),
        ("A".into(), Align::Left),
        ("B".into(), Align::Left),
        (page.get(Text::new("same", "相同")), Align::Left),
    ]);
    for (name, value) in traits {
        let show = |side: &Option<String>| match side.as_deref() {
            Some("") => page.get(Text::new("none", "无")),
            Some(text) => Inlines::quoted(text, VALUE),
            None => page.get(Text::new("not known", "未知")),
        };
        let same = match value.same {
            Some(true) => Text::new("yes", "是"),
            Some(false) => Text::new("no", "否"),
            None => Text::new("not known", "未知"),
        };
        table.row(cells![name.clone(), show(&value.a), show(&value.b), page.get(same)]);
    }
    page.table(page.get(title), table);
}
