/** Delivers notices by channels: signs, sends, tries again. */
export { attempt, type Destination, readDestination } from './destination.ts';
export { Dispatcher, type DeliveryCounts } from './dispatcher.ts';
