import 'reflect-metadata';
import assert from 'node:assert/strict';
import { cpSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { makeExecutableSchema } from '@graphql-tools/schema';
import SchemaBuilder from '@pothos/core';
import * as graphql from 'graphql';
import { GraphQLError, GraphQLInt, GraphQLObjectType, GraphQLSchema } from 'graphql';
import * as nexus from 'nexus';
import {
  Arg,
  buildSchemaSync,
  Ctx,
  Field,
  FieldResolver,
  Mutation,
  ObjectType,
  Query,
  registerEnumType,
  Resolver as TypeResolver,
} from 'type-graphql';
import type { GraphQLContext } from '../../src/graphql/context.ts';
import { createApp, type CreateAppOptions } from '../../src/index.ts';
import { createPrincipal, openTestKeys, type TestKeys } from '../support/keys.ts';
import { query, startServer, type TestServer } from '../support/server.ts';
import { tempFolder } from '../support/temp.ts';

interface Pet {
  name: string;
  kind: string;
}
type PetContext = GraphQLContext & { pets: Pet[] };

/** The same schema made by each library: `{ pets { name kind asker } }` and `mutation { adopt(name:) { name } }`. */
const SCHEMAS: Readonly<Record<string, () => CreateAppOptions['schema']>> = {
  graphql: () => withGraphql(graphql),
  'another copy of graphql': () => {
    const folder = join(tempFolder(), 'node_modules', 'graphql');
    cpSync('node_modules/graphql', folder, { recursive: true });
    return withGraphql(createRequire(import.meta.url)(folder));
  },
  'graphql-tools': () =>
    makeExecutableSchema<PetContext>({
      typeDefs: `
        enum Kind { CAT DOG }
        type Pet { name: String! kind: Kind! asker: String! }
        type Query { pets: [Pet!]! }
        type Mutation { adopt(name: String! = "Tom"): Pet! }
      `,
      resolvers: {
        Kind: { CAT: 'cat', DOG: 'dog' },
        Pet: { asker: (_parent, _args, { principal }) => principal.apiKey.name },
        Query: { pets: (_parent, _args, { pets }) => pets },
        Mutation: { adopt: (_parent, { name }, { pets }) => pets.find((pet) => pet.name === name) },
      },
    }),
  Pothos: () => {
    const builder = new SchemaBuilder<{ Context: PetContext; Objects: { Pet: Pet }; DefaultFieldNullability: false }>({
      defaultFieldNullability: false,
    });
    const kind = builder.enumType('Kind', { values: { CAT: { value: 'cat' }, DOG: { value: 'dog' } } as const });
    builder.objectType('Pet', {
      fields: (t) => ({
        name: t.exposeString('name'),
        kind: t.field({ type: kind, resolve: (pet) => pet.kind as 'cat' }),
        asker: t.string({ resolve: (_pet, _args, { principal }) => principal.apiKey.name }),
      }),
    });
    builder.queryType({
      fields: (t) => ({ pets: t.field({ type: ['Pet'], resolve: (_root, _args, { pets }) => pets }) }),
    });
    builder.mutationType({
      fields: (t) => ({
        adopt: t.field({
          type: 'Pet',
          args: { name: t.arg.string({ required: true, defaultValue: 'Tom' }) },
          resolve: (_root, { name }, { pets }) => pets.find((pet) => pet.name === name)!,
        }),
      }),
    });
    return builder.toSchema();
  },
  Nexus: () => {
    const kind = nexus.enumType({ name: 'Kind', members: { CAT: 'cat', DOG: 'dog' } });
    const pet = nexus.objectType({
      name: 'Pet',
      definition(t) {
        t.nonNull.string('name');
        t.nonNull.field('kind', { type: kind });
        t.nonNull.string('asker', { resolve: (_pet, _args, context) => (context as PetContext).principal.apiKey.name });
      },
    });
    return nexus.makeSchema({
      shouldGenerateArtifacts: false,
      types: [
        pet,
        nexus.queryField('pets', {
          type: nexus.nonNull(nexus.list(nexus.nonNull(pet))),
          resolve: (_root, _args, context) => (context as PetContext).pets as never,
        }),
        nexus.mutationField('adopt', {
          type: nexus.nonNull(pet),
          args: { name: nexus.nonNull(nexus.stringArg({ default: 'Tom' })) },
          resolve: (_root, { name }, context) =>
            (context as PetContext).pets.find((each) => each.name === name) as never,
        }),
      ],
    });
  },
  TypeGraphQL: () => {
    // Called as decorators, which Node cannot run.
    const kinds = { CAT: 'cat', DOG: 'dog' };
    registerEnumType(kinds, { name: 'Kind' });
    class PetType {
      name!: string;
    }
    Field(() => String)(PetType.prototype, 'name');
    Field(() => kinds)(PetType.prototype, 'kind');
    ObjectType('Pet')(PetType);
    class Pets {
      pets({ pets }: PetContext): Pet[] {
        return pets;
      }
      adopt(name: string, { pets }: PetContext): Pet | undefined {
        return pets.find((pet) => pet.name === name);
      }
      asker({ principal }: PetContext): string {
        return principal.apiKey.name;
      }
    }
    const { prototype } = Pets;
    Query(() => [PetType])(prototype, 'pets', {});
    Ctx()(prototype, 'pets', 0);
    Mutation(() => PetType)(prototype, 'adopt', {});
    Arg('name', () => String, { defaultValue: 'Tom' })(prototype, 'adopt', 0);
    Ctx()(prototype, 'adopt', 1);
    FieldResolver(() => String)(prototype, 'asker', {});
    Ctx()(prototype, 'asker', 0);
    TypeResolver(() => PetType)(Pets);
    return buildSchemaSync({ resolvers: [Pets], validate: false });
  },
};

/** The same with the classes of a copy of graphql, and with a root type of another name. */
function withGraphql(graphql: typeof import('graphql')): GraphQLSchema {
  const { GraphQLObjectType, GraphQLSchema, GraphQLNonNull, GraphQLList, GraphQLString, GraphQLEnumType } = graphql;
  const text = new GraphQLNonNull(GraphQLString);
  const kind = new GraphQLEnumType({ name: 'Kind', values: { CAT: { value: 'cat' }, DOG: { value: 'dog' } } });
  const pet = new GraphQLNonNull(
    new GraphQLObjectType<Pet, PetContext>({
      name: 'Pet',
      fields: {
        name: { type: text },
        kind: { type: new GraphQLNonNull(kind) },
        asker: { type: text, resolve: (_pet, _args, { principal }) => principal.apiKey.name },
      },
    }),
  );
  return new GraphQLSchema({
    query: new GraphQLObjectType<unknown, PetContext>({
      name: 'Reading',
      fields: {
        pets: { type: new GraphQLNonNull(new GraphQLList(pet)), resolve: (_root, _args, { pets }) => pets },
      },
    }),
    mutation: new GraphQLObjectType<unknown, PetContext>({
      name: 'Changing',
      fields: {
        adopt: {
          type: pet,
          args: { name: { type: text, defaultValue: 'Tom' } },
          resolve: (_root, { name }, { pets }) => pets.find((each) => each.name === name),
        },
      },
    }),
  });
}

describe("a program's own schema", () => {
  let test: TestKeys;
  let server: TestServer | undefined;
  beforeEach(async () => {
    test = await openTestKeys({ resources: ['PET'] });
  });
  afterEach(async () => {
    await server?.stop();
    server = undefined;
    await test.store.close();
  });
  const serve = async (options: Omit<CreateAppOptions, 'keys'>) => {
    server = await startServer(test.keys, options);
    return server.url;
  };
  const keyWith = (...permissions: string[]) =>
    createPrincipal(test.keys, { name: `Key ${permissions.join(' ').replaceAll(/[:_]/g, ' ')}`, permissions });

  for (const [library, make] of Object.entries(SCHEMAS)) {
    const [reading, changing] =
      library.includes('graphql') && !library.includes('tools') ? ['Reading', 'Changing'] : [];
    it(`of ${library} is served beside the built-in one, to keys with what its fields require`, async () => {
      const url = await serve({
        schema: make()!,
        requires: {
          [`${reading ?? 'Query'}.pets`]: 'PET:READ_ANY',
          [`${changing ?? 'Mutation'}.adopt`]: ['PET:UPDATE_ANY', 'PET:READ_ANY'],
          'Pet.asker': 'ME:READ_OWN',
        },
        context: async ({ principal }) => ({
          pets: [
            { name: 'Tom', kind: 'cat' },
            { name: `Pet of ${principal.apiKey.name}`, kind: 'dog' },
          ],
        }),
      });
      const { secret } = await keyWith('PET:READ_ANY', 'ME:READ_OWN');
      const { body } = await query(url, secret, '{ pets { name kind asker __typename } me { name } }');
      const name = 'Key PET READ ANY ME READ OWN';
      assert.deepEqual(body, {
        data: {
          pets: [
            { name: 'Tom', kind: 'CAT', asker: name, __typename: 'Pet' },
            { name: `Pet of ${name}`, kind: 'DOG', asker: name, __typename: 'Pet' },
          ],
          me: { name },
        },
      });
      const refused = await query(url, secret, 'mutation { adopt { name } }');
      assert.deepEqual(refused.body.data, { adopt: null });
      assert.deepEqual(
        refused.body.errors?.map(({ path, extensions }) => [path, extensions]),
        [[['adopt'], { code: 'FORBIDDEN', missing: ['PET:UPDATE_ANY'] }]],
      );
      const changer = await keyWith('PET:UPDATE_ANY', 'PET:READ_ANY');
      assert.deepEqual((await query(url, changer.secret, 'mutation { adopt { name asker } }')).body.errors?.[0]?.path, [
        'adopt',
        'asker',
      ]);
      const adopted = await query(url, changer.secret, 'mutation { adopt { name kind } }');
      assert.deepEqual(adopted.body, { data: { adopt: { name: 'Tom', kind: 'CAT' } } });
    });
  }

  const own = (fields: object, more: object = {}) =>
    new GraphQLSchema({ query: new GraphQLObjectType({ name: 'Query', fields: fields as never }), ...more });
  const pets = { type: GraphQLInt, resolve: () => 1 };
  const withDirectives = (fields: string, onType = '') =>
    makeExecutableSchema({
      typeDefs: `
        directive @requires(resource: String, fields: String) on OBJECT | FIELD_DEFINITION | ARGUMENT_DEFINITION
        type Pet ${onType} { ${fields} }
        type Query { pet: Pet }
      `,
      resolvers: { Query: { pet: () => ({ secret: 'Tom' }) } },
    });
  const refused: [what: string, options: Record<string, unknown>, code: string, says: RegExp][] = [
    [
      'a root field that requires nothing',
      { schema: own({ pets }), requires: {} },
      'SCHEMA_INVALID',
      /Query\.pets must/,
    ],
    ['no requires', { schema: own({ pets }) }, 'SCHEMA_INVALID', /Query\.pets must be in the option "requires"/],
    [
      'an @requires on a field that is not in requires',
      {
        schema: withDirectives('secret: String @requires(resource: "PET")'),
        requires: { 'Query.pet': 'PET:READ_ANY' },
      },
      'SCHEMA_INVALID',
      /Pet\.secret has @requires.*"requires"/,
    ],
    [
      'an @requires on a type',
      {
        schema: withDirectives('secret: String', '@requires(resource: "PET")'),
        requires: { 'Query.pet': 'PET:READ_ANY', 'Pet.secret': 'PET:READ_ANY' },
      },
      'SCHEMA_INVALID',
      /Pet has @requires/,
    ],
    [
      'an @requires on an argument',
      {
        schema: withDirectives('secret(all: Boolean @requires(resource: "PET")): String'),
        requires: { 'Query.pet': 'PET:READ_ANY', 'Pet.secret': 'PET:READ_ANY' },
      },
      'SCHEMA_INVALID',
      /Pet\.secret\.all has @requires/,
    ],
    ...[{ requires: { resource: 'PET' } }, [{ name: 'requires', args: {} }]].map(
      (directives): [string, Record<string, unknown>, string, RegExp] => [
        `an @requires in extensions as ${Array.isArray(directives) ? 'a list' : 'an object'}`,
        {
          schema: own({
            pet: {
              type: new GraphQLObjectType({
                name: 'Pet',
                fields: { secret: { type: GraphQLInt, extensions: { directives } } },
              }),
              resolve: () => ({}),
            },
          }),
          requires: { 'Query.pet': 'PET:READ_ANY' },
        },
        'SCHEMA_INVALID',
        /Pet\.secret has @requires/,
      ],
    ),
    [
      'a field that it does not have',
      { schema: own({ pets }), requires: { 'Query.pets': 'PET:READ_ANY', 'Query.pet': 'PET:READ_ANY' } },
      'SCHEMA_INVALID',
      /"Query\.pet", which the schema does not have\. Did you mean "?Query\.pets/,
    ],
    [
      'a type that it does not have',
      { schema: own({ pets }), requires: { 'Query.pets': 'PET:READ_ANY', Pets: 'PET:READ_ANY' } },
      'SCHEMA_INVALID',
      /"Pets", which/,
    ],
    [
      'a root field without a resolver',
      { schema: own({ pets: { type: GraphQLInt } }), requires: { 'Query.pets': 'PET:READ_ANY' } },
      'SCHEMA_INVALID',
      /Query\.pets must have a resolver/,
    ],
    [
      'a field that is built in',
      { schema: own({ me: pets }), requires: { 'Query.me': 'PET:READ_ANY' } },
      'SCHEMA_INVALID',
      /Query\.me must be declared only once/,
    ],
    [
      'a type that is built in',
      {
        schema: own({
          pets: { ...pets, type: new GraphQLObjectType({ name: 'ApiKey', fields: { id: { type: GraphQLInt } } }) },
        }),
        requires: { 'Query.pets': 'PET:READ_ANY' },
      },
      'SCHEMA_INVALID',
      /"schema" declares ApiKey, which is built in/,
    ],
    [
      'subscriptions',
      {
        schema: own(
          { pets },
          { subscription: new GraphQLObjectType({ name: 'Events', fields: { pets: { type: GraphQLInt } } }) },
        ),
        requires: { 'Query.pets': 'PET:READ_ANY' },
      },
      'SCHEMA_INVALID',
      /subscriptions/,
    ],
    [
      'an unknown permission',
      { schema: own({ pets }), requires: { 'Query.pets': 'PTE:READ_ANY' } },
      'OPTION_INVALID',
      /"PTE" .*PET/,
    ],
    ['an empty list', { schema: own({ pets }), requires: { 'Query.pets': [] } }, 'OPTION_INVALID', /Query\.pets/],
    [
      'an undefined permission',
      { schema: own({ pets }), requires: { 'Query.pets': undefined } },
      'OPTION_INVALID',
      /Query\.pets/,
    ],
    ['what is no schema', { schema: {}, requires: {} }, 'OPTION_INVALID', /"schema"/],
    [
      'requires alone',
      { requires: { 'Query.pets': 'PET:READ_ANY' } },
      'OPTION_INVALID',
      /"requires" is given without "schema"/,
    ],
    ['a context that is no function', { context: {} }, 'OPTION_INVALID', /"context"/],
  ];
  for (const [what, options, code, says] of refused)
    it(`is refused at the start with ${what}`, async () => {
      await assert.rejects(createApp({ keys: test.keys, ...options }), (error: Error & { code?: string }) => {
        assert.match(error.message, says);
        return error.code === code;
      });
    });

  it('can have @requires on fields that are in requires, and that of Apollo Federation', async () => {
    await serve({
      schema: withDirectives('secret: String @requires(resource: "PET") weight: Int @requires(fields: "secret")'),
      requires: { 'Query.pet': 'PET:READ_ANY', 'Pet.secret': 'PET:READ_ANY' },
    });
  });

  it('gets a context that hides nothing of ours, and its errors look like those of resolvers', async () => {
    const { secret } = await keyWith('PET:READ_ANY');
    const answers = [];
    for (const context of [
      () => ({ principal: 'somebody else' }),
      () => {
        throw new GraphQLError('The pets are asleep.', { extensions: { code: 'ASLEEP' } });
      },
    ]) {
      const url = await serve({ schema: own({ pets }), requires: { 'Query.pets': 'PET:READ_ANY' }, context });
      const { body } = await query(url, secret, '{ pets }');
      answers.push([body.data, body.errors?.[0]?.message]);
      await server?.stop();
    }
    assert.deepEqual(answers, [
      [undefined, 'Internal server error'],
      [undefined, 'The pets are asleep.'],
    ]);
  });
});
