import assert from 'node:assert/strict';
import { buildSchema, type GraphQLScalarType, parse, validate } from 'graphql';
import { FirstHandler } from '../../src/http/graphql-pipeline.ts';

const schema = buildSchema('type Query { online(at: Int): Boolean me: Me } type Me { id: ID }');

const withoutMore = { operationName: null, variables: null };

describe('a document that is not valid', () => {
  for (const query of ['{ onlin }', '{ me }', '{ online(at: "x") { a } me { id(a: 1) } }', 'query ($a: B) { online }'])
    it(`is told what graphql-js says, each time: ${query}`, async () => {
      const handler = new FirstHandler(schema);
      const expected = validate(schema, parse(query)).map((error) => error.toJSON());
      for (let time = 1; time <= 2; time += 1) {
        assert.equal(handler.findInvalid(query), undefined);
        const told = await handler.validate({ query, ...withoutMore });
        assert.deepEqual(
          told!.errors!.map((error) => error.toJSON()),
          expected,
        );
      }
      assert.deepEqual(
        handler.findInvalid(query)!.errors!.map((error) => error.toJSON()),
        expected,
      );
    });

  it('is kept without what it was parsed to, and what its errors were made by', async () => {
    const handler = new FirstHandler(schema);
    for (let time = 1; time <= 2; time += 1) await handler.validate({ query: '{ onlin }', ...withoutMore });
    const { errors } = handler.findInvalid('{ onlin }')!;
    assert.deepEqual(
      errors!.map(({ nodes, stack }) => [nodes, stack?.split('\n').length]),
      [[undefined, 1]],
    );
  });

  it('is asked about again where a scalar has failed: it may not fail the next time', async () => {
    const failing = buildSchema('scalar Odd type Query { odd(value: Odd): Int }');
    (failing.getType('Odd') as GraphQLScalarType).parseLiteral = () => {
      throw new Error('It fails.');
    };
    const handler = new FirstHandler(failing);
    const query = '{ odd(value: 1) }';
    for (let time = 1; time <= 2; time += 1) {
      const result = await handler.validate({ query, ...withoutMore });
      assert.equal(result!.errors![0]!.originalError!.message, 'It fails.');
    }
    assert.equal(handler.findInvalid(query), undefined);
  });

  it('is forgotten where there are many, or long ones', async () => {
    for (const length of [10, 5000]) {
      const handler = new FirstHandler(schema);
      const query = (index: number) => `{ x${index} #${'x'.repeat(length)}\n}`;
      for (let index = 0; index <= 100; index += 1)
        for (let time = 1; time <= 2; time += 1) await handler.validate({ query: query(index), ...withoutMore });
      assert.deepEqual([handler.findInvalid(query(0)), typeof handler.findInvalid(query(100))], [undefined, 'object']);
    }
  });
});

it('says nothing about a document that is valid, each time', async () => {
  const handler = new FirstHandler(schema);
  for (let time = 1; time <= 2; time += 1)
    assert.equal(await handler.validate({ query: '{ online }', ...withoutMore }), undefined);
  assert.equal(handler.findInvalid('{ online }'), undefined);
});
