{# dbt-spark's. A view of a run on a sample is on that sample, whoever reads it later, and says so. #}
{% materialization view, adapter='qbeast' %}
  {%- set built_from = adapter.qbeast_built_from(model, graph) -%}
  {%- set result = create_or_replace_view() -%}
  {%- if built_from is not none -%}
    {% do adapter.qbeast_mark_sampled(this.incorporate(type='view'), built_from) %}
  {%- endif -%}
  {{ return(result) }}
{% endmaterialization %}
