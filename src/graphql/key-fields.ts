import { type FieldTable, fieldTables, fieldsOf, graphqlTypeOf } from '../keys/key/index.ts';

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
  const misspelt = /^ *(#.*)$/m.exec(replaced)?.[1];
  if (misspelt !== undefined) throw new Error(`"${misspelt}" does not name any fields of a key.`);
  return replaced;
}

function definitionOf(name: string, field: FieldTable[string], way: 'input' | 'output'): string {
  const { form, none, help, graphql } = field;
  const isOutput = way === 'output';
  const size = isOutput && form === 'list' ? ' @listSize(assumedSize: 2)' : '';
  return `  ${JSON.stringify(graphql?.[way] ?? help)}\n  ${name}: ${graphqlTypeOf(field)}${isOutput && none !== null ? '!' : ''}${size}`;
}
