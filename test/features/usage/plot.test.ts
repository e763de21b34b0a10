import assert from 'node:assert/strict';
import { showsUnicode } from '../../../src/cli/terminal.ts';
import { plot, usagePlot } from '../../../src/features/usage/cli/usage-view.ts';
import { NO_REQUESTS } from '../../../src/keys/key/use.ts';

describe('a plot', () => {
  const draw = (values: number[], columns = 80, unicode = true) => plot(values, { columns, showsUnicode: unicode });

  it('has heights relative to the highest count, and blanks for zero', () => {
    assert.equal(draw([0, 1, 2, 3, 4, 5, 6, 7, 8]), ' ▁▂▃▄▅▆▇█');
    assert.equal(draw([1, 0, 1000]), '▁ █');
    assert.equal(draw([0, 0]), '  ');
    assert.equal(draw([]), '');
  });

  it('is pure ASCII for a terminal without Unicode', () =>
    assert.equal(draw([0, 1, 2, 3, 4, 5, 6, 7, 8], 80, false), ' .:-=+*#@'));

  it('draws neighbours together where it is too narrow, so that the last column is a full one', () => {
    assert.equal(draw([9, 1, 1, 1, 1], 2), '█▃');
    assert.equal(
      draw(
        Array.from({ length: 24 }, () => 1),
        10,
      ),
      '████████',
    );
    assert.equal(draw([1, 2, 3], 0), '█');
  });
});

describe('the plot of the use of a key', () => {
  const from = Date.UTC(2030, 0, 1);
  const period = (hour: number, counts: object) => ({ start: from + hour * 3_600_000, ...NO_REQUESTS, ...counts });
  const periods = [
    period(0, { accepted: 1200 }),
    period(1, { accepted: 600, refused: 3 }),
    period(23, { accepted: 7 }),
  ];
  const usage = { by: 'HOUR', from, to: from + 86_400_000, periods } as const;

  it('has a line for each outcome of requests: how many, the maximum, and when', () => {
    assert.equal(
      usagePlot(usage, { columns: 80, showsUnicode: true }),
      [
        '2030-01-01 00:00 to 2030-01-02 00:00, UTC',
        'a column is an hour',
        '           total  most',
        'accepted    1807  1200  █▄                     ▁',
        'forbidden      0     0',
        'limited        0     0',
        'refused        3     3   █',
      ].join('\n'),
    );
  });

  it('is no wider than the terminal, down to 30 columns', () => {
    for (const columns of [30, 40, 46, 47, 48, 200]) {
      const [, unit, ...lines] = usagePlot(usage, { columns, showsUnicode: false }).split('\n');
      for (const line of lines) assert.ok(line.length <= Math.max(columns, 32), line);
      assert.match(unit!, columns < 48 ? /^a column is \d hours$/ : /^a column is an hour$/);
    }
  });

  it('names days', () => {
    const text = usagePlot({ ...usage, by: 'DAY', to: from + 2 * 86_400_000 }, { columns: 80, showsUnicode: true });
    assert.match(text, /^2030-01-01 to 2030-01-03, UTC\na column is a day\n/);
  });
});

describe('a terminal', () => {
  for (const [env, expected] of [
    [{}, true],
    [{ LANG: 'en_US.UTF-8' }, true],
    [{ LANG: 'C' }, false],
    [{ LANG: 'de_DE.ISO-8859-1' }, false],
    [{ LANG: 'C', LC_CTYPE: 'C.utf8' }, true],
    [{ LANG: 'en_US.UTF-8', LC_ALL: 'POSIX' }, false],
    [{ LANG: '', LC_ALL: '', TERM: 'xterm' }, true],
    [{ LANG: 'en_US.UTF-8', TERM: 'linux' }, false],
    [{ LANG: 'en_US.UTF-8', TERM: 'dumb' }, false],
  ] as const)
    it(`shows ${expected ? 'more than' : 'only'} ASCII with ${JSON.stringify(env)}`, () =>
      assert.equal(showsUnicode(env), expected));
});
