import assert from 'node:assert/strict';
import { withFilters } from '../../src/graphql/filters.ts';
import { withKeyFields } from '../../src/graphql/key-fields.ts';

describe('a line of a part of the schema that stands for fields of a key', () => {
  it('is replaced by them', () => {
    assert.match(withKeyFields('input A {\n  # input labels\n}'), /\n {2}owner: String\n/);
    assert.match(withFilters('  keys(\n    # filters besides owner\n  ): Int'), /\n {4}tags: /);
  });

  for (const misspelt of [
    '# input labls',
    '# inputs labels',
    '# output labels trough owner',
    '#input labels',
    '# filter besides owner',
  ])
    it(`is refused as "${misspelt}"`, () => {
      assert.throws(() => withKeyFields(withFilters(`input A {\n  ${misspelt}\n}`)), {
        message: `"${misspelt}" does not name any fields of a key.`,
      });
    });

  it('is refused if it names an unknown field', () => {
    assert.throws(() => withKeyFields('  # output labels through ownr'), { message: 'No field is called "ownr".' });
    assert.throws(() => withFilters('    # filters besides ownr'), { message: 'No filter is called "ownr".' });
  });
});
