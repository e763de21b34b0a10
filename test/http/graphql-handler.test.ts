import assert from 'node:assert/strict';
import { buildSchema, type GraphQLScalarType, parse, validate } from 'graphql';
import { documentErrors } from '../../src/http/graphql-pipeline.ts';

const schema = buildSchema('type Query { online(at: Int): Boolean me: Me } type Me { id: ID }');

const withoutMore = { operationName: null, variables: null };

describe('a document that is not valid', () => {
  for (const query of ['{ onlin }', '{ me }', '{ online(at: "x") { a } me { id(a: 1) } }', 'query ($a: B) { online }'])
    it(`is answered as graphql-js does, each time: ${query}`, async () => {
      const errorsOf = documentErrors(schema);
      const expected = validate(schema, parse(query)).map((error) => error.toJSON());
      for (let time = 1; time <= 2; time += 1) {
        const result = await errorsOf({ query, ...withoutMore });
        assert.deepEqual(
          result!.errors!.map((error) => error.toJSON()),
          expected,
        );
      }
    });

  it('has the error of a scalar that failed', async () => {
    const failing = buildSchema('scalar Odd type Query { odd(value: Odd): Int }');
    (failing.getType('Odd') as GraphQLScalarType).parseLiteral = () => {
      throw new Error('It fails.');
    };
    const result = await documentErrors(failing)({ query: '{ odd(value: 1) }', ...withoutMore });
    assert.equal(result!.errors![0]!.originalError!.message, 'It fails.');
  });
});

it('finds no errors in a document that is valid, each time', async () => {
  const errorsOf = documentErrors(schema);
  for (let time = 1; time <= 2; time += 1)
    assert.equal(await errorsOf({ query: '{ online }', ...withoutMore }), undefined);
});
