import assert from 'node:assert/strict';
import { Buffer } from 'node:buffer';
import { inspect } from 'node:util';
import {
  fieldsOf,
  fieldsText,
  fixedFields,
  json,
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
  it('accepts whole numbers of its range, or null', () => {
    for (const [text, value] of [
      ['1', 1],
      [' 999 ', 999],
      ['', null],
    ] as const) {
      const given = centre.fromText!(text);
      assert.deepEqual([centre.validate(given), centre.read(given)], [[], value]);
    }
    for (const text of ['0', '1000', '1.5', 'many', 'Infinity', '0x10', '0b1'])
      assert.deepEqual(
        centre.validate(centre.fromText!(text)),
        [{ code: 'INPUT_INVALID', message: 'The cost centre must be a whole number from 1 to 999.' }],
        text,
      );
  });
});

describe('a field that is one of some words', () => {
  it('accepts these, or null', () => {
    assert.deepEqual(risk.validate('HIGH'), []);
    assert.deepEqual([risk.read('HIGH'), risk.read(null)], ['HIGH', null]);
    assert.match(risk.validate('HIHG' as never)[0]!.message, /^The risk "HIHG" is unknown\. Did you mean HIGH\?/);
  });
});

describe('a field that is a JSON object', () => {
  const metadata = json({ ...common, label: 'Metadata', bytes: 20 })('metadata');
  const problem = (given: unknown) => metadata.validate(given as never)[0]?.message;

  it('accepts objects, as text and as objects, or null', () => {
    for (const [text, value] of [
      ['{"a":[1,{"b":null}]}', { a: [1, { b: null }] }],
      [' {} ', {}],
      [' ', null],
    ] as const) {
      const given = metadata.fromText!(text);
      assert.deepEqual([metadata.validate(given), metadata.read(given)], [[], value]);
    }
    for (const text of ['[1]', '1', '"a"', 'null', '{a: 1}', 'a'])
      assert.match(problem(metadata.fromText!(text))!, /^The metadata must be a JSON object/, text);
  });

  it('counts bytes of UTF-8', () => {
    assert.equal(problem({ a: 'é'.repeat(6) }), undefined);
    assert.equal(problem({ a: 'é'.repeat(7) }), 'The metadata has 22 bytes as JSON; at most 20 are allowed.');
  });

  it('keeps a copy of valid JSON, and refuses the rest', () => {
    const given = { a: { b: 1, c: undefined } };
    const read = metadata.read(given)!;
    given.a.b = 2;
    assert.deepEqual(read, { a: { b: 1 } });
    const circle: Record<string, unknown> = {};
    circle['a'] = circle;
    for (const wrong of [circle, { a: 1n }, [], new Date(0).getTime(), undefined])
      assert.match(problem(wrong)!, /^The metadata must be a JSON object/);
  });

  it('refuses what JSON would change', () => {
    const others = [
      new Date(0),
      new URL('http://localhost'),
      new Map([['a', 1]]),
      new Set([1]),
      Buffer.from('a'),
      () => 1,
    ];
    for (const other of [...others, Object('a'), Symbol('a'), { toJSON: () => ({}) }])
      for (const given of [other, { a: other }, { a: [{ b: other }] }])
        assert.match(problem(given)!, /^The metadata must be a JSON object/, inspect(given));
    assert.match(problem({ a: [undefined] })!, /^The metadata must be a JSON object/);
    assert.equal(problem(Object.assign(Object.create(null), { a: Object.create(null) })), undefined);
  });

  it('refuses numbers that change when they are read', () => {
    for (const text of ['{"a":12345678901234567890}', '{"a":[-9007199254740993]}', '{"a":{"b":1e400}}'])
      assert.match(problem(metadata.fromText!(text))!, /^The metadata has .* Write it as text/, text);
    assert.match(problem({ a: Number.NaN })!, /^The metadata has the number NaN/);
    for (const a of [Number.MAX_SAFE_INTEGER, 1.5, -1]) assert.doesNotMatch(problem({ a }) ?? '', /number/);
  });

  it('is read from a store as it is', () => {
    const values = { ...NO_VALUES, metadata: JSON.parse('{"b":1,"a":{"__proto__":2}}') as object };
    assert.deepEqual(readFieldsText(fieldsText({ ...values, metadata: { ...values.metadata } }), true), values);
    assert.equal(readFieldsText('{"16":"a"}', true), undefined);
  });
});

describe('the fields of a key in a store', () => {
  it('have an id each', () => {
    const ids = fieldsOf({ ...keyFields, ...fixedFields }).map(([, { id }]) => id);
    assert.deepEqual(ids, [...new Set(ids)]);
  });

  it('are read as they were written, and a missing one is not written', () => {
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
