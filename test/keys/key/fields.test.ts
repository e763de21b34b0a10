import assert from 'node:assert/strict';
import {
  fieldsOf,
  fieldsText,
  fixedFields,
  keyFields,
  NO_VALUES,
  number,
  readFieldsText,
  word,
} from '../../../src/keys/key/fields.ts';

const common = { id: 999, help: 'For tests.' };
const centre = number({ ...common, label: 'Cost centre', min: 1, max: 999 })();
const risk = word({ ...common, label: 'Risk', words: ['LOW', 'HIGH'] })();

describe('a field that is a number', () => {
  it('takes whole numbers of its range, and none', () => {
    for (const [text, value] of [
      ['1', 1],
      [' 999 ', 999],
      ['', null],
    ] as const) {
      const given = centre.fromText!(text);
      assert.deepEqual([centre.validate(given), centre.read(given)], [[], value]);
    }
    for (const text of ['0', '1000', '1.5', 'many', 'Infinity'])
      assert.deepEqual(
        centre.validate(centre.fromText!(text)),
        [{ code: 'INPUT_INVALID', message: 'The cost centre must be a whole number from 1 to 999.' }],
        text,
      );
  });
});

describe('a field that is one of some words', () => {
  it('takes these, and none', () => {
    assert.deepEqual(risk.validate('HIGH'), []);
    assert.deepEqual([risk.read('HIGH'), risk.read(null)], ['HIGH', null]);
    assert.match(risk.validate('HIHG' as never)[0]!.message, /"HIHG" is not a risk\. Did you mean HIGH\?/);
  });
});

describe('the fields of a key in a store', () => {
  it('have an id each', () => {
    const ids = fieldsOf({ ...keyFields, ...fixedFields }).map(([, { id }]) => id);
    assert.deepEqual(ids, [...new Set(ids)]);
  });

  it('are read as they were written, and nothing is written of a key that has none', () => {
    assert.equal(fieldsText(NO_VALUES), null);
    const values = { ...NO_VALUES, owner: 'Ada', tags: ['env=prod'], allowFrom: ['10.0.0.0/8'] };
    assert.deepEqual(readFieldsText(fieldsText(values), true), values);
    const later = { ...values, unknownFields: { 999: { any: 'value' }, ['__proto__']: 1 } };
    assert.deepEqual(readFieldsText(fieldsText(later), true), later);
  });

  it('are not read where they are damaged', () => {
    for (const text of ['', '[]', '{', 'null', '{"14":1}', '{"15":["a=b",1]}', '{"5":[]}', '{"5":["10.0.0.0/8","x"]}'])
      assert.equal(readFieldsText(text, false), undefined, text);
  });
});
