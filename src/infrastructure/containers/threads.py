"""Providers of threads, messages and sources."""

from dependency_injector import containers, providers

from application.sources.add_source import AddSource
from application.sources.delete_source import DeleteSource
from application.sources.ports import SourceSearch
from application.sources.queries import GetSource, ListSources, ReadSource
from application.sources.search_sources import SearchSources
from application.sources.store_source import StoreSource
from application.threads.append_message import AppendMessage
from application.threads.create_thread import CreateThread
from application.threads.delete_thread import DeleteThread
from application.threads.queries import GetThread, ListMessages, ListThreads
from application.threads.release_thread import ReleaseThread
from infrastructure.containers.platform import Platform
from infrastructure.containers.storage import Storage
from infrastructure.extraction.process_extractor import ProcessTextExtractor
from infrastructure.persistence.sources.search import SqlSourceSearch


class Threads(containers.DeclarativeContainer):
    create_thread: providers.Provider[CreateThread] = providers.Singleton(
        CreateThread, threads=Storage.threads, clock=Platform.clock, ids=Platform.ids
    )
    get_thread: providers.Provider[GetThread] = providers.Singleton(GetThread, threads=Storage.threads)
    list_threads: providers.Provider[ListThreads] = providers.Singleton(ListThreads, threads=Storage.threads)
    list_messages: providers.Provider[ListMessages] = providers.Singleton(ListMessages, threads=Storage.threads)
    append_message: providers.Provider[AppendMessage] = providers.Singleton(
        AppendMessage, threads=Storage.threads, clock=Platform.clock, ids=Platform.ids
    )
    delete_thread: providers.Provider[DeleteThread] = providers.Singleton(
        DeleteThread, threads=Storage.threads, clock=Platform.clock, ids=Platform.ids
    )
    release_thread: providers.Provider[ReleaseThread] = providers.Singleton(
        ReleaseThread, threads=Storage.threads, queue=Storage.run_queue, clock=Platform.clock, ids=Platform.ids
    )

    text_extractor: providers.Provider[ProcessTextExtractor] = providers.Singleton(ProcessTextExtractor)
    store_source: providers.Provider[StoreSource] = providers.Singleton(
        StoreSource,
        intake=Storage.source_intake,
        sources=Storage.sources,
        extractor=text_extractor,
        clock=Platform.clock,
    )
    source_search: providers.Provider[SourceSearch] = providers.Singleton(SqlSourceSearch, database=Storage.database)
    search_sources: providers.Provider[SearchSources] = providers.Singleton(
        SearchSources, sources=Storage.sources, search=source_search
    )
    add_source: providers.Provider[AddSource] = providers.Singleton(
        AddSource, store=store_source, clock=Platform.clock, ids=Platform.ids
    )
    list_sources: providers.Provider[ListSources] = providers.Singleton(
        ListSources, sources=Storage.sources, threads=Storage.threads
    )
    get_source: providers.Provider[GetSource] = providers.Singleton(GetSource, sources=Storage.sources)
    read_source: providers.Provider[ReadSource] = providers.Singleton(ReadSource, sources=Storage.sources)
    delete_source: providers.Provider[DeleteSource] = providers.Singleton(
        DeleteSource, sources=Storage.sources, clock=Platform.clock, ids=Platform.ids
    )
