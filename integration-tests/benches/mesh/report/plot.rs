//! The report as a picture: how far each row is from its goal, on a logarithmic scale.

use std::fmt::Write;

use super::{BenchReport, RowOutcome, table::number};
use crate::targets::{OriginalFigure, RowTarget};

/// Places on the picture, in pixels.
const LEFT: f64 = 520.0;
const WIDTH: f64 = 520.0;
const TOP: f64 = 64.0;
const LINE: f64 = 22.0;
const RIGHT: f64 = 190.0;

/// The picture shows values from a thousandth of the goal to a hundred times it, as factors of ten.
const BEST: f64 = -3.0;
const WORST: f64 = 2.0;

/// Offset and colour of each database in a row.
const DATABASES: [(&str, f64, &str); 3] =
    [("sqlite", -4.0, "#1f77b4"), ("postgresql", 4.0, "#d95f02"), ("any", 0.0, "#555555")];

/// The whole report as SVG. To the left of the goal is better.
pub fn plot(report: &BenchReport) -> String {
    let rows: Vec<_> = report.rows().filter(|(_, outcomes)| outcomes.iter().any(is_measured)).collect();
    let height = TOP + LINE * rows.len() as f64 + 30.0;
    let host = &report.host;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" \
         font-family=\"sans-serif\" font-size=\"12\">\n\
         <rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n",
        width = LEFT + WIDTH + RIGHT,
    );
    let title = format!(
        "Medians over their goals, with least and most; {}, commit {}, {} x {}, load {} to {}",
        host.date, host.commit, host.cores, host.processor, host.load_before, host.load_after
    );
    text(&mut svg, 10.0, 20.0, "#000000", "start", &title);
    legend(&mut svg);
    grid(&mut svg, height);
    for (index, (target, outcomes)) in rows.iter().enumerate() {
        let y = TOP + LINE * (index as f64 + 0.5);
        let label = format!("{} {}", target.id, target.what);
        text(&mut svg, LEFT - 10.0, y + 4.0, "#000000", "end", &label);
        if let Some(original) = target.original() {
            diamond(&mut svg, target, original, y);
        }
        let values: Vec<_> =
            outcomes.iter().filter_map(|outcome| bar(&mut svg, target, outcome, y)).collect();
        let values = format!("{} {}", values.join(" / "), target.unit);
        text(&mut svg, LEFT + WIDTH + 10.0, y + 4.0, "#000000", "start", &values);
    }
    svg + "</svg>\n"
}

fn is_measured(outcome: &(&str, &RowOutcome)) -> bool {
    outcome.1.is_measured()
}

fn legend(svg: &mut String) {
    let mut x = LEFT;
    for (name, _, colour) in DATABASES {
        let name = if name == "any" { "without database" } else { name };
        circle(svg, x, 38.0, colour);
        text(svg, x + 10.0, 42.0, "#000000", "start", name);
        x += 140.0;
    }
    text(svg, x, 42.0, "#7b3294", "start", "\u{25c6} original");
}

/// A line for each factor of ten, and a strong one for the goal.
fn grid(svg: &mut String, height: f64) {
    for exponent in BEST as i32..=WORST as i32 {
        let x = place(10f64.powi(exponent));
        let colour = if exponent == 0 { "#000000" } else { "#dddddd" };
        line(svg, (x, TOP), (x, height - 26.0), colour);
        let label =
            if exponent == 0 { "goal".to_owned() } else { format!("{}x", number(10f64.powi(exponent))) };
        text(svg, x, height - 10.0, "#000000", "middle", &label);
    }
}

/// Draws the figure of one database in a row; returns its median as text.
fn bar(svg: &mut String, target: &RowTarget, outcome: &(&str, &RowOutcome), y: f64) -> Option<String> {
    let (database, outcome) = outcome;
    let (_, shift, colour) = DATABASES.iter().find(|(name, ..)| name == database && outcome.is_measured())?;
    let (least, middle, most) = outcome.spread(target);
    let y = y + shift;
    line(
        svg,
        (place(target.distance(least, target.goal)), y),
        (place(target.distance(most, target.goal)), y),
        colour,
    );
    circle(svg, place(target.distance(middle, target.goal)), y, colour);
    Some(number(middle))
}

fn diamond(svg: &mut String, target: &RowTarget, OriginalFigure { best, worst, .. }: OriginalFigure, y: f64) {
    let (from, to) = (place(target.distance(best, target.goal)), place(target.distance(worst, target.goal)));
    line(svg, (from, y), (to, y), "#7b3294");
    for x in [from, to] {
        text(svg, x, y + 4.0, "#7b3294", "middle", "\u{25c6}");
    }
}

fn place(distance: f64) -> f64 {
    let exponent = distance.max(f64::MIN_POSITIVE).log10().clamp(BEST, WORST);
    LEFT + WIDTH * (exponent - BEST) / (WORST - BEST)
}

fn line(svg: &mut String, from: (f64, f64), to: (f64, f64), colour: &str) {
    let ((x1, y1), (x2, y2)) = (from, to);
    // Writing to a text cannot fail, here and below.
    let _infallible = writeln!(
        svg,
        "<line x1=\"{x1:.1}\" y1=\"{y1:.1}\" x2=\"{x2:.1}\" y2=\"{y2:.1}\" stroke=\"{colour}\"/>"
    );
}

fn circle(svg: &mut String, x: f64, y: f64, colour: &str) {
    let _infallible = writeln!(svg, "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3.5\" fill=\"{colour}\"/>");
}

fn text(svg: &mut String, x: f64, y: f64, colour: &str, anchor: &str, text: &str) {
    let text = text.replace('&', "&amp;").replace('<', "&lt;");
    let _infallible = writeln!(
        svg,
        "<text x=\"{x:.1}\" y=\"{y:.1}\" fill=\"{colour}\" text-anchor=\"{anchor}\">{text}</text>"
    );
}
