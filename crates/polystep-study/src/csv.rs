//! Comma-separated values, safe to open in a spreadsheet.
//!
//! A field with a comma, a quotation mark or a line break is quoted. A text that a spreadsheet would run as a formula (`=1+1`)
//! gets an apostrophe in front, as spreadsheets themselves write it. Reading takes it off again.

/// Rows of fields as text, a line for each row.
pub fn write<'a>(rows: impl IntoIterator<Item = &'a Vec<String>>) -> String {
    let line = |row: &Vec<String>| row.iter().map(|field| quoted(field)).collect::<Vec<_>>().join(",") + "\n";
    rows.into_iter().map(line).collect()
}

/// Whether a spreadsheet would take a field for a formula. A number with a sign is none.
fn is_formula(field: &str) -> bool {
    field.starts_with(['=', '+', '-', '@', '\t', '\r']) && field.parse::<f64>().is_err()
}

fn quoted(field: &str) -> String {
    let field = if is_formula(field) { format!("'{field}") } else { field.to_owned() };
    if field.contains([',', '"', '\n', '\r']) { format!("\"{}\"", field.replace('"', "\"\"")) } else { field }
}

/// The rows of a text, each with the number of its first line. The last row is `None` if a quotation mark is not closed.
pub fn read(text: &str) -> Vec<(usize, Option<Vec<String>>)> {
    let (mut rows, mut row, mut field) = (Vec::new(), Vec::new(), String::new());
    let (mut inside, mut line, mut first) = (false, 1, 1);
    let mut letters = text.chars().peekable();
    while let Some(letter) = letters.next() {
        line += usize::from(letter == '\n');
        match letter {
            '"' if inside && letters.next_if_eq(&'"').is_some() => field.push('"'),
            '"' => inside = !inside,
            ',' if !inside => row.push(std::mem::take(&mut field)),
            '\r' if !inside && letters.peek() == Some(&'\n') => {}
            '\n' if !inside => {
                row.push(std::mem::take(&mut field));
                rows.push((first, Some(std::mem::take(&mut row))));
                first = line;
            }
            letter => field.push(letter),
        }
    }
    if !(row.is_empty() && field.is_empty()) {
        row.push(field);
        rows.push((first, (!inside).then_some(row)));
    }
    for field in rows.iter_mut().filter_map(|(_, row)| row.as_mut()).flatten() {
        if field.strip_prefix('\'').is_some_and(is_formula) {
            field.remove(0);
        }
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(fields: &[&str]) -> Vec<String> {
        fields.iter().map(|field| (*field).to_owned()).collect()
    }

    #[test]
    fn fields_come_back() {
        let rows = [row(&["a,b", "say \"hi\"", "", "two\nlines"]), row(&["=1+1", "-5", "@x", "'quoted'"])];
        let text = write(&rows);
        assert_eq!(text, "\"a,b\",\"say \"\"hi\"\"\",,\"two\nlines\"\n'=1+1,-5,'@x,'quoted'\n");
        assert_eq!(read(&text), [(1, Some(rows[0].clone())), (3, Some(rows[1].clone()))]);
        assert_eq!(read("a,b\r\nc"), [(1, Some(row(&["a", "b"]))), (2, Some(row(&["c"])))]);
    }

    #[test]
    fn an_open_quotation_mark_is_noticed() {
        assert_eq!(read("a\nb,\"c"), [(1, Some(row(&["a"]))), (2, None)]);
        assert!(read("").is_empty());
    }
}
