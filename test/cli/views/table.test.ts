import assert from 'node:assert/strict';
import { type Column, layOut, openTable } from '../../../src/cli/output.ts';
import { shorten, widthOf } from '../../../src/cli/wrapped.ts';

describe('a text that is shortened', () => {
  const rows: readonly (readonly [text: string, columns: number, shown: string])[] = [
    ['CI deploy', 9, 'CI deploy'],
    ['CI deploy', 8, 'CI depl…'],
    ['CI deploy', 4, 'CI…'],
    ['CI', 1, '…'],
    ['CI', 0, ''],
    ['', 0, ''],
    ['鍵鍵鍵', 6, '鍵鍵鍵'],
    ['鍵鍵鍵', 5, '鍵鍵…'],
    ['鍵鍵鍵', 4, '鍵…'],
    ['e\u0301e\u0301e\u0301', 3, 'e\u0301e\u0301e\u0301'],
    ['e\u0301e\u0301e\u0301', 2, 'e\u0301…'],
    ['กำกำกำ', 4, 'กำ…'],
    ['👩‍👩‍👧 family', 4, '👩‍👩‍👧…'],
  ];
  for (const [text, columns, shown] of rows)
    it(`is "${shown}" of "${text}" in ${columns} columns`, () => {
      assert.equal(shorten(text, columns), shown);
      assert.ok(widthOf(shown) <= columns);
    });
});

describe('the columns of a table', () => {
  const column = (natural: number, least = natural, leaves?: number) => ({ natural, least, leaves });
  const rows: readonly (readonly [
    what: string,
    columns: ReturnType<typeof column>[],
    total: number,
    widths: number[],
  ])[] = [
    ['are as wide as they need where there is room', [column(5, 1), column(9)], 80, [5, 9]],
    ['share what there is', [column(50, 1), column(50, 1)], 42, [20, 20]],
    ['leave nothing over', [column(50, 1), column(50, 1)], 43, [21, 20]],
    ['give what they do not need to others', [column(5, 1), column(90, 1), column(50, 1)], 49, [5, 20, 20]],
    ['are not narrower than they may be', [column(90, 10), column(14), column(90, 8)], 40, [11, 14, 11]],
    ['are left out in their order', [column(20, 10), column(14, 14, 2), column(11, 11, 1)], 27, [11, 14, 0]],
    ['are all left out that must be', [column(20, 10), column(14, 14, 2), column(11, 11, 1)], 20, [20, 0, 0]],
    ['without an order are left out from the last on', [column(20, 10), column(20, 10), column(5)], 22, [10, 10, 0]],
    ['with an order leave before those without', [column(20, 10, 1), column(20, 10), column(20, 10)], 22, [0, 10, 10]],
    ['come down to one, which is cut', [column(20), column(20)], 7, [7, 0]],
    ['of a terminal of one column', [column(20, 1)], 1, [1]],
  ];
  for (const [what, columns, total, widths] of rows)
    it(what, () => {
      assert.deepEqual(layOut(columns, total), widths);
    });
});

describe('a table', () => {
  const columns: Column[] = [{ title: 'NAME', least: 4 }, { title: 'STATUS' }, { title: 'LAST USED', leaves: 1 }];
  const row = ['A key with a long name', 'ACTIVE', '2 minutes ago'];

  it('has lines that fit the terminal, whatever they contain', async () => {
    const names = ['鍵'.repeat(100), 'ก่'.repeat(50), 'x'.repeat(100), 'e\u0301'.repeat(100), '', '👩‍👩‍👧'.repeat(30)];
    for (let width = 1; width <= 220; width += 1) {
      const table = await openTable(columns, { isTerminal: true, columns: width });
      const lines = table(names.map((name) => [name, 'ACTIVE', 'never'])).split('\n');
      assert.equal(lines.length, names.length + 1);
      for (const line of lines) assert.ok(widthOf(line) <= width, `${width}: ${line}`);
    }
  });

  it('grows with later rows, and has one head', async () => {
    const table = await openTable(columns, { isTerminal: true, columns: 40 });
    assert.equal(table([['A', 'ACTIVE', 'never']]), 'NAME  STATUS  LAST USED\nA     ACTIVE  never');
    assert.equal(table([row]), 'A key with a lon…  ACTIVE  2 minutes ago');
    assert.equal(table([['B', 'ACTIVE', 'never']]), `B${' '.repeat(18)}ACTIVE  never`);
  });

  it('elsewhere has a line a row, uncut, with tabs between the cells', async () => {
    const table = await openTable(columns, { isTerminal: false, columns: 10 });
    assert.equal(table([row, ['a\tb\u001b[31m', '', '-']]), `${row.join('\t')}\na b\t\t-`);
  });
});
