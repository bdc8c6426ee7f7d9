// Takes the SVG out of the page in which it was drawn (standard input), with a size and a ground on which it can be read in the dark.
import { readFileSync } from "node:fs";

const [, , hash] = process.argv;
const page = readFileSync(0, "utf8");
const svg = page.match(/<svg[^]*<\/svg>/)?.[0];
if (!svg || page.includes("Syntax error")) {
    console.error(page.slice(-1000));
    process.exit(1);
}
const [, width, height] = svg.match(/ viewBox="[-\d.]+ [-\d.]+ ([\d.]+) ([\d.]+)"/).map(Number);
const image = svg
    .replace(' width="100%"', ` width="${Math.ceil(width)}" height="${Math.ceil(height)}"`)
    .replace(/ style="max-width[^"]*"/, ' style="background-color: #ffffff"')
    .replaceAll("<br>", "<br/>");
console.log(`<!-- Made by make pictures, of a source and a theme with the SHA-256 ${hash} -->\n${image}`);
