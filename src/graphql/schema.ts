import { makeExecutableSchema } from '@graphql-tools/schema';
import { assertValidSchema, defaultFieldResolver, type GraphQLSchema, isNonNullType } from 'graphql';
import { KeysError } from '../keys/errors.ts';
import type { KeysService } from '../keys/service.ts';
import { refuseReplacements } from './built-in.ts';
import { applyResolversOf } from './apply.ts';
import { auditResolversOf } from './audit-resolvers.ts';
import { keepToBudget } from './budget/budgeted-fields.ts';
import { consentResolversOf } from './consent-resolvers.ts';
import type { SchemaExtension, ServiceInfo } from './extension.ts';
import { readHostPart } from './host-part.ts';
import { tellOwnTimes } from './own-times.ts';
import { documentsOf, readRequirements } from './requirements.ts';
import { enforceRequires, refuseRepeatedRootFields, type RootField, rootFieldsOf } from './requires.ts';
import { resolversOf } from './resolvers.ts';
import { routeResolversOf } from './route-resolvers.ts';
import type { ServiceParts } from './service-parts.ts';
import { serviceResolversOf } from './service-resolvers.ts';
import { typeDefsOf } from './type-defs.ts';

/**
 * Creates the schema from the built-in part and those of the host.
 * @throws KeysError SCHEMA_INVALID if the parts do not fit, a host's part replaces something built-in, or a root field
 * has no `@requires` or is declared twice
 */
export async function createSchema(
  keys: KeysService,
  info: ServiceInfo,
  extensions: readonly SchemaExtension[] = [],
  service: ServiceParts = {},
): Promise<GraphQLSchema> {
  try {
    const parts = await Promise.all(extensions.map(readHostPart));
    const own = documentsOf(typeDefsOf(keys.catalog));
    const documents = [...own, ...parts.flatMap((part) => part.documents)];
    const requirements = readRequirements(documents);
    refuseReplacements(own, parts);
    const schema = makeExecutableSchema({
      typeDefs: documents,
      resolvers: [
        resolversOf(keys, info),
        auditResolversOf(keys),
        applyResolversOf(keys),
        consentResolversOf(keys),
        routeResolversOf(keys, service),
        serviceResolversOf(keys, service),
        ...parts.map(({ resolvers }) => resolvers),
      ] as never,
    });
    assertValidSchema(schema);
    if (schema.getSubscriptionType()) throw new Error('The schema is invalid: subscriptions are not supported.');
    refuseRepeatedRootFields(schema, documents);
    enforceRequires(schema, requirements);
    for (const field of rootFieldsOf(schema)) allowNull(field);
    keepToBudget(schema);
    tellOwnTimes(schema, own);
    return schema;
  } catch (error) {
    throw new KeysError('SCHEMA_INVALID', (error as Error).message, { cause: error });
  }
}

/**
 * Lets a root field be null, if it fails: one that was refused would discard the data of all others. A host's non-null
 * field is null only then.
 */
function allowNull({ path, field }: RootField): void {
  if (!isNonNullType(field.type)) return;
  field.type = field.type.ofType;
  const resolve = field.resolve ?? defaultFieldResolver;
  const present = (value: unknown) => {
    if (value == null) throw new Error(`${path} is non-null, and its resolver returned null.`);
    return value;
  };
  field.resolve = (...args) => {
    const value: unknown = resolve(...args);
    return value instanceof Promise ? value.then(present) : present(value);
  };
}
