//! HTML and SVG as text.

/// Every element is closed, in order.
pub fn is_well_formed(markup: &str) {
    let mut open: Vec<&str> = Vec::new();
    for tag in markup.split('<').skip(1) {
        let tag = tag.split_once('>').unwrap_or_else(|| panic!("an open tag: {tag}")).0;
        let name = tag.split([' ', '\n']).next().unwrap().trim_end_matches('/');
        if let Some(closed) = name.strip_prefix('/') {
            assert_eq!(open.pop(), Some(closed), "{tag}");
        } else if !tag.ends_with('/') && !["input", "br", "meta"].contains(&name) {
            open.push(name);
        }
    }
    assert_eq!(open, [""; 0].as_slice());
}
