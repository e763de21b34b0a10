import { type ConversionConfig, toJsonSchema } from '@valibot/to-json-schema';
import { SCHEMA_FIELD } from '../src/config/patterns.ts';
import type { About, Schema } from '../src/config/schema.ts';
import { allSections } from '../src/config/read-config.ts';
import type { Section, SectionContext } from '../src/config/section.ts';
import { createCatalog } from '../src/keys/permissions/index.ts';

/** The context of sections without a file, for their descriptions. */
const CONTEXT: SectionContext = {
  file: '/svc-api.yaml',
  given: {},
  catalog: createCatalog(),
  read: {},
  issues: [],
  unmet: [],
};
export const DESCRIBED = Array.from(await allSections(), ([name, section]) => {
  const { schema, ...about } = section as Section;
  return { name, ...about, schema: schema(CONTEXT) };
});

function textOf({ description, otherwise }: About): { description?: string } {
  const isDefault = otherwise !== undefined && !['none', 'false'].includes(otherwise);
  return description === '' ? {} : { description: `${description}${isDefault ? ` Default: ${otherwise}.` : ''}` };
}

const CONVERSION: ConversionConfig = {
  typeMode: 'input',
  target: 'draft-2020-12',
  // Rules in code declare their part of the JSON Schema themselves.
  errorMode: 'ignore',
  overrideSchema: ({ valibotSchema, jsonSchema }) => {
    const { entries } = valibotSchema as { entries?: Record<string, Schema & { about?: About }> };
    for (const [name, { about }] of Object.entries(entries ?? {}))
      Object.assign(jsonSchema.properties![name]!, about && textOf(about));
    if (jsonSchema.required?.length === 0) delete jsonSchema.required;
    return jsonSchema;
  },
};

/**
 * The JSON Schema (draft 2020-12) of the configuration. It accepts a little more than the rules do: it does not know
 * declarations elsewhere, invalid hosts and paths, and contradictions between routes.
 */
export function configSchema(): string {
  const sections = DESCRIBED.map(({ name, schema, ...about }) => {
    const converted = toJsonSchema(schema, CONVERSION);
    delete converted.$schema;
    return [name, { ...textOf(about), ...converted }];
  });
  const schema = {
    $schema: 'https://json-schema.org/draft/2020-12/schema',
    title: 'The configuration of svc-api, svc-api.yaml',
    // An empty file is valid.
    type: ['object', 'null'],
    additionalProperties: false,
    properties: {
      $schema: SCHEMA_FIELD,
      ...Object.fromEntries(sections),
    },
    // A header for signing people in needs a trusted proxy.
    anyOf: [
      { not: { required: ['people'], properties: { people: { required: ['header'] } } } },
      { required: ['trust'], properties: { trust: { minItems: 1 } } },
    ],
  };
  return `${JSON.stringify(schema, null, 2)}\n`;
}
