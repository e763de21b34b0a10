import { HELP_TOPICS } from './topics.ts';
import { VERSION_TOPIC } from './version.ts';

/** What our own program takes in place of a command, and after `help`, with summaries. A host has its own words. */
export function wordsBesideCommands({ name }: { name: string }, help: boolean): Map<string, string> {
  if (name !== 'svc-api') return new Map();
  const topics = Object.entries({ version: VERSION_TOPIC, ...(help && HELP_TOPICS) });
  return new Map(topics.map(([word, { summary }]) => [word, summary]));
}
