import assert from 'node:assert/strict';

/** One metric of a scrape. */
export interface Family {
  type: string;
  help: string;
  samples: { name: string; labels: Record<string, string>; value: number }[];
}

const NAME = /^[a-zA-Z_:][a-zA-Z0-9_:]*$/;
const SAMPLE = /^([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(.*)\})? (\S+)$/;
const LABEL = /([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\[\\"n])*)"(,|$)/gy;
const SUFFIXES: Record<string, readonly string[]> = {
  counter: [''],
  gauge: [''],
  histogram: ['_bucket', '_sum', '_count'],
  summary: ['', '_sum', '_count'],
};
/** Units that are not base units of Prometheus. */
const OTHER_UNITS = /_(?:milliseconds|ms|microseconds|minutes|hours|days|kilobytes|megabytes|percent)(?:_total)?$/;

/**
 * Parses Prometheus' text format 0.0.4, as strictly as `promtool check metrics`: one HELP and TYPE before the samples
 * of each metric, no duplicate series, cumulative histograms with +Inf, names by convention.
 */
export function parseExposition(text: string): Map<string, Family> {
  assert.ok(text.endsWith('\n'), 'the last line ends');
  const families = new Map<string, Family>();
  const helps = new Map<string, string>();
  const series = new Set<string>();
  let current = '';
  for (const line of text.split('\n').filter((each) => each !== '')) {
    const [, keyword, name = '', rest = ''] = /^# (HELP|TYPE) (\S+) (.*)$/.exec(line) ?? [];
    if (keyword !== undefined) assert.match(name, NAME, line);
    if (keyword === 'HELP') {
      assert.ok(!helps.has(name) && rest !== '', line);
      helps.set(name, rest);
    } else if (keyword === 'TYPE') {
      assert.ok(!families.has(name) && SUFFIXES[rest] && helps.has(name), line);
      families.set(name, { type: rest, help: helps.get(name)!, samples: [] });
      current = name;
    } else {
      const [, sample = '', labelText = '', value = ''] = SAMPLE.exec(line) ?? [];
      const family = families.get(current)!;
      assert.ok(
        SUFFIXES[family.type]!.some((suffix) => sample === current + suffix),
        line,
      );
      const labels = labelsIn(labelText);
      const key = `${sample}${JSON.stringify(Object.entries(labels).toSorted(([one], [other]) => (one < other ? -1 : 1)))}`;
      assert.ok(!series.has(key), `twice: ${line}`);
      series.add(key);
      family.samples.push({ name: sample, labels, value: numberIn(value) });
    }
  }
  for (const [name, family] of families) checkFamily(name, family);
  return families;
}

/** The value of a series; undefined if there is none. */
export function valueOf(
  families: Map<string, Family>,
  name: string,
  labels: Record<string, string> = {},
): number | undefined {
  const family = families.get(name) ?? families.get(name.replace(/_(?:bucket|sum|count)$/, ''));
  const isMatch = (found: Record<string, string>) =>
    Object.entries(labels).every(([key, value]) => found[key] === value);
  return family?.samples.find((sample) => sample.name === name && isMatch(sample.labels))?.value;
}

function labelsIn(text: string): Record<string, string> {
  const found = Array.from(text.matchAll(LABEL));
  assert.equal(found.map(([all]) => all).join(''), text, text);
  assert.equal(new Set(found.map(([, name]) => name)).size, found.length, text);
  return Object.fromEntries(found.map(([, name, value]) => [name!, value!]));
}

function numberIn(text: string): number {
  const named: Record<string, number> = { NaN: Number.NaN, '+Inf': Infinity, '-Inf': -Infinity };
  const value = named[text] ?? Number(text);
  assert.ok(text in named || (text !== '' && !Number.isNaN(value)), text);
  return value;
}

function checkFamily(name: string, { type, samples }: Family): void {
  assert.equal(type === 'counter', name.endsWith('_total'), `${name} is a ${type}`);
  assert.doesNotMatch(name, OTHER_UNITS);
  if (type === 'counter') for (const { value } of samples) assert.ok(value >= 0, name);
  if (type !== 'histogram') return;
  const byLabels = Map.groupBy(samples, ({ labels }) =>
    JSON.stringify(Object.entries(labels).filter(([label]) => label !== 'le')),
  );
  for (const [labels, own] of byLabels) {
    const buckets = own.filter((sample) => sample.name === `${name}_bucket`);
    const bounds = buckets.map(({ labels: { le } }) => numberIn(le!));
    assert.deepEqual(
      bounds,
      bounds.toSorted((one, other) => one - other),
      name + labels,
    );
    assert.equal(bounds.at(-1), Infinity, name + labels);
    const counts = buckets.map(({ value }) => value);
    assert.deepEqual(
      counts,
      counts.toSorted((one, other) => one - other),
      name + labels,
    );
    assert.equal(counts.at(-1), own.find((sample) => sample.name === `${name}_count`)?.value, name + labels);
  }
}
