import assert from 'node:assert/strict';
import { USED_GRANTS } from '../../src/features/usage/suggest.ts';
import {
  buildClientSchema,
  getIntrospectionQuery,
  getNamedType,
  getNullableType,
  type GraphQLArgument,
  type GraphQLField,
  type GraphQLInputField,
  type GraphQLInputType,
  GraphQLID,
  type IntrospectionQuery,
  isEnumType,
  isInputObjectType,
  isLeafType,
  isListType,
  isNonNullType,
} from 'graphql';
import { OPERATOR } from '../../src/keys/authorization/principal.ts';
import { describeOnEach } from '../support/dialects.ts';
import { createPrincipal } from '../support/keys.ts';
import { query, startTestService, type TestService } from '../support/server.ts';

/** Placeholders for required arguments that are not ids. */
const VALUES: Record<string, string> = { Int: '1', Boolean: 'false', DateTime: '"2026-01-01T00:00:00Z"' };

describeOnEach('an invalid id', () => {
  let test: TestService;
  before(async () => {
    test = await startTestService();
  });
  after(() => test.stop());

  it('is treated as an unknown one, wherever GraphQL takes an id, and fails nothing', async () => {
    const { secret } = await createPrincipal(test.keys, { name: 'Admin', roles: ['ADMIN'] });
    const { body } = await query(test.url, secret, getIntrospectionQuery());
    const schema = buildClientSchema(body.data as unknown as IntrospectionQuery);
    const asked: string[] = [];
    for (const type of [schema.getMutationType()!, schema.getQueryType()!])
      for (const field of Object.values(type.getFields()).filter(takesId)) {
        const selection = isLeafType(getNamedType(field.type)) ? '' : '{ __typename }';
        const operation = `${type.name.toLowerCase()} { ${field.name}(${valuesOf(field.args)}) ${selection} }`;
        const { errors = [] } = (await query(test.url, secret, operation)).body;
        for (const { extensions } of errors)
          assert.match(String(extensions?.['code']), /^(NOT_FOUND|INPUT_INVALID)$/, operation);
        asked.push(field.name);
      }
    for (const name of ['deleteApiKeys', 'updateApiKeys', 'apiKey', 'apiKeys', 'apiKeyList', 'routes'])
      assert.ok(asked.includes(name), name);
  });

  it('has no use, no child keys and no changes', async () => {
    const { lists, audit } = test.keys;
    assert.deepEqual([...(await test.keys.useOf(['x']))], []);
    assert.equal((await test.keys.port(USED_GRANTS).of(['x'])).get('x')!.size, 0);
    assert.equal((await lists.branchesOf(['x', 'y'])).byKey.get('x')?.count, 0);
    assert.deepEqual(await audit.read({ apiKey: 'x', actor: 'y' }, OPERATOR), []);
  });
});

function takesId({ args }: GraphQLField<unknown, unknown>): boolean {
  return args.some((argument) => isId(argument.type));
}

function isId(given: GraphQLInputType): boolean {
  const type = getNamedType(given);
  return (
    type === GraphQLID || (isInputObjectType(type) && Object.values(type.getFields()).some((field) => isId(field.type)))
  );
}

/** The ids and the required arguments. */
function valuesOf(fields: readonly (GraphQLArgument | GraphQLInputField)[]): string {
  return fields
    .filter((field) => isId(field.type) || (isNonNullType(field.type) && field.defaultValue === undefined))
    .map(({ name, type }) => `${name}: ${valueOf(type)}`)
    .join(', ');
}

function valueOf(given: GraphQLInputType): string {
  const type = getNullableType(given);
  if (isListType(type)) return `[${valueOf(type.ofType)}]`;
  if (isInputObjectType(type)) return `{ ${valuesOf(Object.values(type.getFields()))} }`;
  if (isEnumType(type)) return type.getValues()[0]!.name;
  return VALUES[type.name] ?? '"nonsense"';
}
