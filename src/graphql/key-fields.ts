import { type FieldTable, fieldTables, fieldsOf, graphqlTypeOf, IDENTITY_FIELDS } from '../keys/key/index.ts';

/** A placeholder line such as `# input labels`, or for only some fields: `# output labels through …`, `after …`. */
const MARKER = /^ *# (input|output) (labels|restrictions|fixed)(?: (through|after) (\w+))?$/gm;

/** Replaces the placeholder lines by the fields of a key. @throws Error for any other comment */
export function withKeyFields(part: string): string {
  const replaced = part.replaceAll(
    MARKER,
    (_, way: 'input' | 'output', table: keyof typeof fieldTables, side?: 'through' | 'after', name?: string) => {
      const fields = fieldsOf(fieldTables[table]);
      const place = fields.findIndex(([each]) => each === name) + 1;
      if (name !== undefined && place === 0) throw new Error(`No field is called "${name}".`);
      const some = side === undefined ? fields : side === 'through' ? fields.slice(0, place) : fields.slice(place);
      return some.map(([each, field]) => definitionOf(each, field, way)).join('\n');
    },
  );
  const whole = withIdentities(replaced);
  const misspelt = /^ *(#.*)$/m.exec(whole)?.[1];
  if (misspelt !== undefined) throw new Error(`"${misspelt}" does not name any fields of a key.`);
  return whole;
}

/** Replaces the placeholders of the identities that keys can stand for, and of their types. */
function withIdentities(part: string): string {
  const fields = IDENTITY_FIELDS.map(([name, { help, type }]) => `  ${JSON.stringify(help)}\n  ${name}: ${type.name}`);
  const types = IDENTITY_FIELDS.map(([, { parts, type }]) => {
    const texts = Object.entries(parts).map(([name, help]) => `  ${JSON.stringify(help)}\n  ${name}: String!`);
    return `${JSON.stringify(type.help)}\ntype ${type.name} {\n${texts.join('\n')}\n}`;
  });
  return part
    .replace(/^ *# identities$/m, () => fields.join('\n'))
    .replace(/^# types of identities$/m, () => types.join('\n\n'));
}

function definitionOf(name: string, field: FieldTable[string], way: 'input' | 'output'): string {
  const { form, none, help, graphql } = field;
  const isOutput = way === 'output';
  const size = isOutput && form === 'list' ? ' @listSize(assumedSize: 2)' : '';
  return `  ${JSON.stringify(graphql?.[way] ?? help)}\n  ${name}: ${graphqlTypeOf(field)}${isOutput && none !== null ? '!' : ''}${size}`;
}
