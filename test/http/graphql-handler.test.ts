import assert from 'node:assert/strict';
import { buildSchema, parse, validate } from 'graphql';
import { InvalidDocuments } from '../../src/http/graphql-handler.ts';

const schema = buildSchema('type Query { online(at: Int): Boolean me: Me } type Me { id: ID }');

describe('a document that is not valid', () => {
  const withoutMore = { operationName: null, variables: null };

  for (const query of ['{ onlin }', '{ me }', '{ online(at: "x") { a } me { id(a: 1) } }', 'query ($a: B) { online }'])
    it(`is told what graphql-js says, each time: ${query}`, async () => {
      const invalid = new InvalidDocuments(schema);
      const expected = validate(schema, parse(query)).map((error) => error.toJSON());
      for (let time = 1; time <= 2; time += 1) {
        assert.equal(invalid.find(query), undefined);
        const told = await invalid.tell({ query, ...withoutMore });
        assert.deepEqual(
          told.errors!.map((error) => error.toJSON()),
          expected,
        );
      }
      assert.deepEqual(
        invalid.find(query)!.errors!.map((error) => error.toJSON()),
        expected,
      );
    });

  it('is forgotten where there are many, or long ones', async () => {
    for (const length of [10, 5000]) {
      const invalid = new InvalidDocuments(schema);
      const query = (index: number) => `{ x${index} #${'x'.repeat(length)}\n}`;
      for (let index = 0; index <= 100; index += 1)
        for (let time = 1; time <= 2; time += 1) await invalid.tell({ query: query(index), ...withoutMore });
      assert.deepEqual([invalid.find(query(0)), typeof invalid.find(query(100))], [undefined, 'object']);
    }
  });
});
