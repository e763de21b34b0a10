import assert from 'node:assert/strict';
import { buildSchema, type DocumentNode, parse, specifiedRules, validate } from 'graphql';
import { Validation } from '../../src/graphql/validation.ts';
import { cpuTime } from '../support/cpu.ts';
import { Random } from '../support/random.ts';
import { randomQuery } from '../support/random-query.ts';

const schema = buildSchema(`
  directive @once(a: Int!) on FIELD | QUERY | FRAGMENT_SPREAD
  directive @often repeatable on FIELD | FRAGMENT_DEFINITION | VARIABLE_DEFINITION
  enum Color { RED GREEN }
  scalar Odd
  input Input { a: Int! b: [Color!] = [GREEN] c: Input }
  interface Named { name: String }
  type Dog implements Named { name(short: Boolean = false): String barks: Int! friends(first: Int!): [Named!] }
  type Cat implements Named { name: String meows: String! self: Cat either: Either }
  union Either = Dog | Cat
  type Query {
    online: Boolean dog(id: ID, input: Input, colors: [Color!], odd: Odd): Dog cat: Cat named: [Named] either: Either
  }
  type Mutation { rename(name: String!): Dog }
  type Subscription { barks: Int meows: Int }
`);
const validation = new Validation(schema);

/** What each rule refuses. */
const REFUSED: Readonly<Record<string, string>> = {
  ExecutableDefinitionsRule: '{ online } type T { a: Int }',
  UniqueOperationNamesRule: 'query A { online } query A { online }',
  LoneAnonymousOperationRule: '{ online } query A { online }',
  SingleFieldSubscriptionsRule: 'subscription { barks meows }',
  KnownTypeNamesRule: 'query ($a: Nothing) { cat { self { ... on Nowhere { name } } } }',
  FragmentsOnCompositeTypesRule: '{ cat { ... on Color { name } } }',
  VariablesAreInputTypesRule: 'query ($a: Dog) { online }',
  ScalarLeafsRule: '{ cat }',
  FieldsOnCorrectTypeRule: '{ cat { self { barks } } }',
  UniqueFragmentNamesRule: '{ cat { ...F } } fragment F on Cat { name } fragment F on Cat { meows }',
  KnownFragmentNamesRule: '{ cat { ...Nothing } }',
  NoUnusedFragmentsRule: '{ online } fragment F on Cat { name }',
  PossibleFragmentSpreadsRule: '{ cat { ... on Dog { barks } } }',
  NoFragmentCyclesRule: '{ cat { ...F } } fragment F on Cat { self { ...G } } fragment G on Cat { self { ...F } }',
  UniqueVariableNamesRule: 'query ($a: ID, $a: ID) { dog(id: $a) { barks } }',
  NoUndefinedVariablesRule: '{ dog { ...F } } fragment F on Dog { name(short: $a) }',
  NoUnusedVariablesRule: 'query ($a: ID) { online }',
  KnownDirectivesRule: '{ online @skip(if: true) @nothing }',
  UniqueDirectivesPerLocationRule: '{ cat { name @once(a: 1) @once(a: 2) } }',
  KnownArgumentNamesRule: '{ dog { name(long: true) } }',
  UniqueArgumentNamesRule: '{ dog(id: 1, id: 1) { barks } }',
  ValuesOfCorrectTypeRule: '{ dog(input: { a: 1, c: { a: "x" } }) { barks } }',
  ProvidedRequiredArgumentsRule: '{ dog { friends { name } } }',
  VariablesInAllowedPositionRule: 'query ($a: Int) { dog { friends(first: $a) { name } } }',
  OverlappingFieldsCanBeMergedRule: '{ either { ... on Dog { a: barks } ... on Cat { a: meows } } }',
  UniqueInputFieldNamesRule: '{ dog(input: { a: 1, a: 2 }) { barks } }',
  MaxIntrospectionDepthRule: `{ __schema { types { ${'fields { type { '.repeat(4)} name ${'} } '.repeat(4)} } } }`,
};
const VALID = [
  '{ online }',
  'query A { online } query B { cat { name } }',
  'query ($a: Int! = 1 @often, $b: Input) @once(a: 1) { dog(input: $b) { friends(first: $a) { ...F } } } fragment F on Named @often { name @often @often }',
  '{ either { __typename ... on Cat { a: name } ... on Dog { a: name(short: true) } } }',
  'mutation ($a: String!) { rename(name: $a) { barks } }',
  '{ dog(colors: [RED, GREEN], odd: { any: [1, "x", $v, null] }) { barks } }'.replace('$v', '2.5'),
  '{ __schema { types { name fields { name type { name } } } } __type(name: "Dog") { name } }',
];
const isValid = (document: DocumentNode) => validate(schema, document).length === 0;

describe('validation', () => {
  it('knows what each rule of graphql-js refuses', () => {
    assert.deepEqual(
      specifiedRules.map(({ name }) => name),
      Object.keys(REFUSED),
    );
  });

  for (const rule of specifiedRules)
    it(`refuses what ${rule.name} refuses`, () => {
      const document = parse(REFUSED[rule.name]!);
      assert.notEqual(validate(schema, document, [rule]).length, 0);
      assert.equal(validation.isValid(document), false);
    });

  for (const text of VALID)
    it(`accepts ${text}`, () => {
      const document = parse(text);
      assert.deepEqual(validate(schema, document), []);
      assert.equal(validation.isValid(document), true);
    });

  for (const seed of process.env['SVC_API_TEST_SEEDS']?.split(',').map(Number) ?? [1])
    it(`says the same as graphql-js about documents that were changed somewhere, seed ${seed}`, () => {
      const random = new Random(seed);
      let [valid, invalid] = [0, 0];
      while (valid + invalid < 3000) {
        const from = random.chance(0.5) ? random.pick([...VALID, ...Object.values(REFUSED)]) : undefined;
        const text = changed(from ?? randomQuery(schema, random, { directives: 0.1 }).query, random);
        let document;
        try {
          document = parse(text);
        } catch {
          continue;
        }
        const expected = isValid(document);
        assert.equal(validation.isValid(document), expected, text);
        if (expected) valid += 1;
        else invalid += 1;
      }
      assert.ok(valid > 300 && invalid > 300, `${valid} valid, ${invalid} invalid`);
    });

  it('ends where graphql-js does, if fragments refer to one another too often', () => {
    const spreads = (count: number) => Array.from({ length: count }, (_, index) => `...F${index}`).join(' ');
    const fragments = Array.from(
      { length: 100 },
      (_, index) => `fragment F${index} on Query { ${spreads(index)} online }`,
    );
    const operations = Array.from({ length: 60 }, (_, index) => `query Q${index} { ...F99 }`);
    const document = parse([...operations, ...fragments].join(' '));
    assert.deepEqual(
      validate(schema, document).map(({ message }) => message),
      ['Validation aborted.'],
    );
    assert.equal(validation.isValid(document), false);
  });

  it('looks through a long text once, however often its fragments are used', () => {
    const operations = Array.from({ length: 220 }, (_, index) => {
      const [one, other] = [index % 50, 50 + Math.floor(index / 50)];
      return `query Q${index} { ...F${one} ...F${other} }`;
    });
    const timeFor = (length: number) => {
      const fragments = Array.from(
        { length: 99 },
        (_, index) => `fragment F${index} on Query { ...F${index + 1} ${','.repeat(index === 50 ? 3 * length : 0)} }`,
      );
      const last = `fragment F99 on Query { online } #${'☃'.repeat(length)}`;
      const document = parse([...operations, ...fragments, last].join(' '));
      const times = Array.from({ length: 3 }, () => {
        const began = cpuTime();
        assert.equal(validation.isValid(document), true);
        return cpuTime() - began;
      });
      return Math.min(...times);
    };
    const [short, long] = [timeFor(1), timeFor(150_000)];
    assert.ok(long < 4 * short, `${long} ms instead of ${short}`);
  });
});

/** A text with some of its words left out, doubled, or replaced by others. */
function changed(text: string, random: Random): string {
  const words = text.match(/\.\.\.|"[^"]*"|[@$]?\w+|[^\s\w]/g)!;
  for (let count = random.chance(0.3) ? 0 : 1 + Math.floor(random.next() * 2); count > 0; count -= 1) {
    const at = Math.floor(random.next() * words.length);
    const word = words[at]!;
    const made = random.pick([[], [word, word], [random.pick(words)], [word, random.pick(words)]]);
    words.splice(at, 1, ...made);
  }
  return words.join(' ');
}
